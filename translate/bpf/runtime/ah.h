/* The AH header of a packet (ipt_ah, ip6t_ah), which is an extension header in IPv6. */

/* Read the header at `offset` of the frame; 0: there is none. */
INLINE void parse_ah(struct __sk_buff *skb, struct pkt *p, u32 offset)
{
	u8 head[8] = {};

	p->has_ah = offset && offset + 12 <= ETH_LENGTH + p->length &&
		    !bpf_skb_load_bytes(skb, offset, head, sizeof(head));
	p->ah_length = head[1];
	p->ah_reserved = head[2] << 8 | head[3];
	p->ah_spi = read32(head + 4);
}
