/* The loads of programs of classic BPF (xt_bpf). */

#define FROM_NETWORK 0xfff00000 /* SKF_NET_OFF */

/* Load bytes at an offset from the IP header. Returns 0 behind the end of the packet (bpf_skb_load_helper_32). */
INLINE int load_bytes(struct __sk_buff *skb, struct pkt *p, u32 at, u32 size, u32 *to)
{
	u8 bytes[4] = {};

	if (at >= FROM_NETWORK)
		at -= FROM_NETWORK;
	if (at > p->length || at + size > p->length)
		return 0;
	at += ETH_LENGTH;
	if (size == 4) {
		if (bpf_skb_load_bytes(skb, at, bytes, 4))
			return 0;
		*to = read32(bytes);
	} else if (size == 2) {
		if (bpf_skb_load_bytes(skb, at, bytes, 2))
			return 0;
		*to = bytes[0] << 8 | bytes[1];
	} else {
		if (bpf_skb_load_bytes(skb, at, bytes, 1))
			return 0;
		*to = bytes[0];
	}
	return 1;
}
