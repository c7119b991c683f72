/* REJECT: the rejected packet becomes the answer (nf_reject_ipv4.c, icmp_send).
 *
 * A tc program cannot make a packet, but it can turn one around. The answer then goes the way of
 * every packet made here, OUTPUT and POSTROUTING included: over the egress of its device, or, when
 * it is for the node itself, through lo.
 */

#define REJECT_WITH_RESET 255
#define MOST_QUOTED 548 /* 576 bytes without two headers */

INLINE void set_ip_sum(u8 *ip)
{
	u16 sum = ~fold(bpf_csum_diff(0, 0, (__be32 *)ip, 20, 0));

	ip[10] = swap16(sum) >> 8;
	ip[11] = swap16(sum);
}

INLINE void put32(u8 *at, u32 value)
{
	at[0] = value >> 24;
	at[1] = value >> 16;
	at[2] = value >> 8;
	at[3] = value;
}

/* Whether icmp_send or nf_send_reset would answer this packet at all. */
INLINE int deserves_answer(struct __sk_buff *skb, struct pkt *p)
{
	u32 type = address_type(p->daddr, 0);

	if (type == RTN_BROADCAST || type == RTN_MULTICAST)
		return 0;
	if (p->bad_sum)
		return 0;
	if (p->reject == REJECT_WITH_RESET)
		return p->has_tcp && !(p->tcp_flags & FLAG_RST);
	if (p->proto == PROTO_ICMP)
		return p->has_icmp && p->icmp_type <= 18 && !is_icmp_error(p->icmp_type);
	return !p->incoming || p->looped || p->oif || skb->pkt_type == 0;
}

/* Turn the packet into a RST. Returns -1 when the kernel does not allow it. */
INLINE int make_reset(struct __sk_buff *skb, struct pkt *p)
{
	u8 h[40] = {};
	u32 sum;
	u16 folded;

	h[0] = 0x45;
	h[3] = 40;
	h[6] = 0x40; /* do not fragment */
	h[8] = 64;
	h[9] = PROTO_TCP;
	put32(h + 12, p->daddr);
	put32(h + 16, p->saddr);
	set_ip_sum(h);
	h[20] = p->dport >> 8;
	h[21] = p->dport;
	h[22] = p->sport >> 8;
	h[23] = p->sport;
	h[32] = 5 << 4;
	h[33] = FLAG_RST;
	if (p->tcp_flags & FLAG_ACK) {
		put32(h + 24, p->ack);
	} else {
		put32(h + 28, segment_end(p));
		h[33] |= FLAG_ACK;
	}
	sum = bpf_csum_diff(0, 0, (__be32 *)(h + 12), 28, 0);
	folded = ~fold((u32)fold(sum) + swap16(PROTO_TCP) + swap16(20));
	h[36] = swap16(folded) >> 8;
	h[37] = swap16(folded);
	if (bpf_skb_change_tail(skb, ETH_LENGTH + 40, 0))
		return -1;
	return bpf_skb_store_bytes(skb, ETH_LENGTH, h, sizeof(h), 0);
}

/* Turn the packet into an ICMP error about it, from `source`. */
INLINE int make_error(struct __sk_buff *skb, struct pkt *p, u32 source)
{
	u8 h[28] = {};
	u32 quoted = p->length > MOST_QUOTED ? MOST_QUOTED : p->length;
	u32 total = quoted + 28, id = bpf_get_prandom_u32();
	u16 sum;

	if (bpf_skb_change_tail(skb, ETH_LENGTH + quoted, 0))
		return -1;
	if (bpf_skb_adjust_room(skb, 28, BPF_ADJ_ROOM_MAC, 0))
		return -1;
	h[0] = 0x45;
	h[1] = (p->tos & 0x1e) | 0xc0; /* precedence: internetwork control */
	h[2] = total >> 8;
	h[3] = total;
	h[4] = id >> 8;
	h[5] = id;
	h[8] = 64;
	h[9] = PROTO_ICMP;
	put32(h + 12, source);
	put32(h + 16, p->saddr);
	set_ip_sum(h);
	h[20] = 3; /* destination unreachable */
	h[21] = p->reject;
	if (bpf_skb_store_bytes(skb, ETH_LENGTH, h, sizeof(h), 0))
		return -1;
	sum = ~fold(sum_of(skb, ETH_LENGTH + 20, quoted + 8, 0));
	return bpf_skb_store_bytes(skb, ETH_LENGTH + 22, &sum, 2, 0);
}

int nfparity_reject(struct __sk_buff *skb)
{
	struct pkt *p = slot_at(skb->cb[0]);
	struct next_hop hop = {.family = 2};
	u32 oif, via, here, source;
	u16 quoted_l4;

	if (!p)
		return TC_ACT_SHOT;
	if (!p->incoming || p->looped)
		p->bad_sum = bad_checksum(skb, p);
	if (!deserves_answer(skb, p))
		return TC_ACT_SHOT;
	/* For the node itself, the error comes from the address that was asked; otherwise from the one
	 * that the route back prefers. */
	here = p->oif == 0 || p->oif == LOOPBACK_INDEX;
	if (route_back(p, &oif, &via, &source))
		return TC_ACT_SHOT;
	if (here)
		source = p->daddr;
	if (p->reject == REJECT_WITH_RESET ? make_reset(skb, p) : make_error(skb, p, source))
		return TC_ACT_SHOT;
	/* The answer belongs to the connection of what it answers (nf_ct_attach), entered or not. */
	quoted_l4 = ETH_LENGTH + 28 + p->ihl;
	p->quoted_proto = p->proto;
	p->quoted_ports = p->has_ports;
	if (p->has_ct) {
		p->dir = !p->dir;
		p->related = 1;
		p->ct_state = CT_RELATED;
	} else {
		p->ct_state = CT_INVALID;
	}
	p->fresh = 0;
	p->looped = 0;
	p->mark = 0;
	if (parse(skb, p))
		return TC_ACT_SHOT;
	p->quoted = ETH_LENGTH + 28;
	p->quoted_l4 = quoted_l4;
	if (oif == LOOPBACK_INDEX) {
		p->answer = 1;
		set_out(p, oif);
		programs.call(skb, PROGRAM_ANSWER);
		return TC_ACT_SHOT;
	}
	skb->tc_index = p->slot;
	pass(skb, p, AT_ANSWER);
	hop.address = swap32(via);
	return redirect_to_neighbour(oif, &hop, sizeof(hop), 0);
}

/* An answer begins its way. */
int nfparity_answer(struct __sk_buff *skb)
{
	struct pkt *p = slot_at(skb->cb[0]);

	if (!p)
		return TC_ACT_SHOT;
	set_in(p, 0);
	RUN(chain_raw_output);
	p->incoming = p->bad_sum = 0;
	programs.call(skb, PROGRAM_TRACK);
	return TC_ACT_SHOT;
}
