/* Answers as IPv6 has them (nf_reject_ipv6.c, icmp6_send). ipv4/answer.h has the same names. */

#define UNREACHABLE 1
#define MOST_QUOTED 1232 /* 1280 bytes without two headers */

/* Whether icmp6_send would answer this packet if its checksum is correct (is_ineligible). */
INLINE int deserves_error(struct __sk_buff *skb, struct pkt *p)
{
	if (p->proto == PROTO_ICMP && (!p->has_icmp || p->icmp_type < 128))
		return 0;
	return !p->incoming || p->looped || p->oif || skb->pkt_type == 0;
}

/* Whether the packet's addresses may be answered at all: RFC 4443, 2.4. */
INLINE int is_answerable(struct pkt *p) { return p->saddr != 0 && !is_group(p->saddr) && !is_group(p->daddr); }

/* Whether a RST may be sent from and to the packet's addresses. ipv6_addr_type does not classify an IPv4-mapped
 * address as unicast. */
INLINE int is_resettable(struct pkt *p) { return !is_mapped(p->saddr) && !is_mapped(p->daddr); }

/* The header of an answer: a RST, or an ICMPv6 error. */
INLINE void write_header(u8 *h, struct pkt *p, addr src, addr dst, u8 proto, u32 length)
{
	struct wire from = to_wire(src), to = to_wire(dst);

	h[0] = 0x60;
	h[4] = length >> 8;
	h[5] = length;
	h[6] = proto;
	h[7] = 64;
	__builtin_memcpy(h + SADDR_AT, &from, sizeof(from));
	__builtin_memcpy(h + DADDR_AT, &to, sizeof(to));
}
