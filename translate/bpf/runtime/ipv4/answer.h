/* Answers as IPv4 has them (nf_reject_ipv4.c, icmp_send). ipv6/answer.h has the same names. */

#define UNREACHABLE 3
#define MOST_QUOTED 548 /* 576 bytes without two headers */

/* ICMP types that count as errors and get no answer (icmp_pointers[].error): 1-7 and 9-12, one bit each. */
#define ICMP_SILENT 0x1efe

/* Whether icmp_send would answer this packet if its checksum is correct. */
INLINE int deserves_error(struct __sk_buff *skb, struct pkt *p)
{
	if (p->proto == PROTO_ICMP && (!p->has_icmp || p->icmp_type > 18 || (ICMP_SILENT >> p->icmp_type & 1)))
		return 0;
	return !p->incoming || p->looped || p->oif || skb->pkt_type == 0;
}

/* Whether the packet's addresses may be answered at all. */
INLINE int is_answerable(struct pkt *p)
{
	u32 type = address_type(p->daddr, 0);

	return type != RTN_BROADCAST && type != RTN_MULTICAST;
}

/* Whether a RST may be sent from and to the packet's addresses. */
INLINE int is_resettable(struct pkt *p) { return 1; }

/* The header of an answer: a RST, or an ICMP error about p. */
INLINE void write_header(u8 *h, struct pkt *p, addr src, addr dst, u8 proto, u32 length)
{
	u32 total = HEADER_LENGTH + length, id = bpf_get_prandom_u32();
	u16 sum;

	h[0] = 0x45;
	h[2] = total >> 8;
	h[3] = total;
	if (proto == PROTO_ICMP) {
		h[1] = (p->tos & 0x1e) | 0xc0; /* precedence: internetwork control */
		h[4] = id >> 8;
		h[5] = id;
	} else {
		h[6] = 0x40; /* do not fragment */
	}
	h[8] = 64;
	h[9] = proto;
	put32(h + SADDR_AT, src);
	put32(h + DADDR_AT, dst);
	sum = ~fold(bpf_csum_diff(0, 0, (__be32 *)h, HEADER_LENGTH, 0));
	h[10] = swap16(sum) >> 8;
	h[11] = swap16(sum);
}
