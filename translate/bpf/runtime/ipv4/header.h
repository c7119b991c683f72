/* The IPv4 header. ipv6/header.h has the same names. */

#define SADDR_AT 12
#define DADDR_AT 16
#define HEADER_LENGTH 20
#define ICMP_HAS_PSEUDO_HEADER 0

/* Whether the header's checksum is wrong, so that the stack drops the packet before it is tracked (ip_rcv_core). */
INLINE int is_damaged(struct __sk_buff *skb, struct pkt *p)
{
	u32 words[5] = {}, sum, option;

	if (bpf_skb_load_bytes(skb, ETH_LENGTH, words, sizeof(words)))
		return 1;
	sum = bpf_csum_diff(0, 0, words, sizeof(words), 0);
	for (u32 i = 0; i < 10; i++) {
		asm volatile("" : "+r"(i));
		if (ETH_LENGTH + HEADER_LENGTH + i * 4 >= p->l4)
			break;
		if (bpf_skb_load_bytes(skb, ETH_LENGTH + HEADER_LENGTH + i * 4, &option, 4))
			return 1;
		sum = bpf_csum_diff(0, 0, &option, 4, sum);
	}
	return fold(sum) != 0xffff;
}

/* Read the network header into p. Returns 0, or -1 for a malformed IPv4 packet. */
INLINE int parse_network(struct __sk_buff *skb, struct pkt *p)
{
	u8 ip[20] = {};
	u32 header;

	if (bpf_skb_load_bytes(skb, ETH_LENGTH, ip, sizeof(ip)))
		return -1;
	header = (ip[0] & 15) << 2;
	if ((ip[0] >> 4) != 4 || header < HEADER_LENGTH)
		return -1;
	p->tos = ip[1];
	p->length = ip[2] << 8 | ip[3];
	p->ip_id = ip[4] << 8 | ip[5];
	p->ttl = ip[8];
	p->proto = ip[9];
	p->saddr = read32(ip + SADDR_AT);
	p->daddr = read32(ip + DADDR_AT);
	p->fragment = (ip[6] & 0x1f) | ip[7] ? LATER_FRAGMENT : ip[6] & 0x20 ? FIRST_FRAGMENT : 0;
	p->l4 = ETH_LENGTH + header;
	p->segment = p->length - header;
	if (READS_AH)
		parse_ah(skb, p, p->proto == PROTO_AH && p->fragment != LATER_FRAGMENT ? p->l4 : 0);
	return p->length < header ? -1 : 0;
}

INLINE int strip_fragment_header(struct __sk_buff *skb, struct pkt *p) { return 0; }

/* Read the header of the packet that an ICMP error quotes. Returns -1 if conntrack would not accept it. */
INLINE int parse_quoted(struct __sk_buff *skb, struct pkt *p, struct tuple *inner, u16 *id)
{
	u8 ip[20] = {};

	p->quoted = p->l4 + 8;
	if (!has_bytes(p, p->quoted, sizeof(ip)) || bpf_skb_load_bytes(skb, p->quoted, ip, sizeof(ip)))
		return -1;
	if ((ip[6] & 0x1f) || ip[7]) /* it has no transport header (ipv4_get_l4proto) */
		return -1;
	p->quoted_l4 = p->quoted + ((ip[0] & 15) << 2);
	p->quoted_segment = (ip[2] << 8 | ip[3]) - ((ip[0] & 15) << 2);
	p->quoted_proto = ip[9];
	inner->src = read32(ip + SADDR_AT);
	inner->dst = read32(ip + DADDR_AT);
	*id = ip[4] << 8 | ip[5];
	return 0;
}

INLINE u32 pseudo_sum(addr src, addr dst, u8 proto, u32 length)
{
	u32 words[3];

	words[0] = swap32(src);
	words[1] = swap32(dst);
	words[2] = swap32((u32)proto << 16 | (u16)length);
	return bpf_csum_diff(0, 0, (__be32 *)words, sizeof(words), 0);
}

/* Correct the header's checksum for a changed address; the transport checksum is corrected already. */
INLINE void address_changed(struct __sk_buff *skb, u32 diff) { bpf_l3_csum_replace(skb, ETH_LENGTH + 10, 0, diff, 0); }

/* The same in the quoted header. Address and checksum change together, so the error's checksum stays correct. */
INLINE void quoted_address_changed(struct __sk_buff *skb, struct pkt *p, u32 diff)
{
	bpf_l3_csum_replace(skb, p->quoted + 10, 0, diff, 0);
}

/* Replace the byte at `at` of the header; `shift` is 8 for the high byte of a word, 0 for the low one. */
INLINE void set_header_byte(struct __sk_buff *skb, u32 at, u32 shift, u8 old, u8 new)
{
	if (old == new)
		return;
	bpf_l3_csum_replace(skb, ETH_LENGTH + 10, swap16(old << shift), swap16(new << shift), 2);
	bpf_skb_store_bytes(skb, ETH_LENGTH + at, &new, 1, 0);
}

INLINE void set_tos(struct __sk_buff *skb, struct pkt *p, u8 value)
{
	set_header_byte(skb, 1, 0, p->tos, value);
	p->tos = value;
}

INLINE void set_ttl(struct __sk_buff *skb, struct pkt *p, u8 value)
{
	set_header_byte(skb, 8, 8, p->ttl, value);
	p->ttl = value;
}

/* The field whose change makes a packet made here be routed again (ipt_mangle_out). */
INLINE u32 routed_by(struct pkt *p) { return p->tos; }

/* The hardware address for a multicast or broadcast address (ip_eth_mc_map). */
INLINE void group_mac(u8 *mac, addr group)
{
	__builtin_memset(mac, 0xff, 6);
	if (group == 0xffffffff)
		return;
	mac[0] = 1;
	mac[1] = 0;
	mac[2] = 0x5e;
	mac[3] = (group >> 16) & 0x7f;
	mac[4] = group >> 8;
	mac[5] = group;
}
