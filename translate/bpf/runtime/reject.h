/* REJECT: the rejected packet becomes the answer.
 *
 * A tc program cannot make a packet, but it can turn one into another and send it back. The answer then takes
 * the path of every packet made here, with OUTPUT and POSTROUTING: through the egress of its device or, if it
 * is for the node itself, through lo.
 */

#define ANSWER_HEADER (HEADER_LENGTH + 8) /* with the ICMP header */

/* Protocols whose checksum REJECT does not verify (nf_reject_verify_csum). */
INLINE int is_unverified(u8 proto)
{
	return proto == PROTO_GRE || proto == PROTO_ESP || proto == PROTO_AH || proto == PROTO_SCTP ||
	       proto == PROTO_DCCP || proto == PROTO_UDPLITE;
}

/* Whether nf_send_unreach or nf_send_reset would answer this packet at all. */
INLINE int deserves_answer(struct __sk_buff *skb, struct pkt *p)
{
	if (p->bad_sum || !is_answerable(p))
		return 0;
	if (p->reject == REJECT_WITH_RESET)
		return p->has_tcp && !(p->tcp_flags & FLAG_RST) && is_resettable(p);
	return deserves_error(skb, p);
}

/* Turn the packet into a RST. Returns -1 if a helper of the kernel fails. */
INLINE int make_reset(struct __sk_buff *skb, struct pkt *p)
{
	u8 h[HEADER_LENGTH + 20] = {};
	u8 *tcp = h + HEADER_LENGTH;
	u16 sum;

	write_header(h, p, p->daddr, p->saddr, PROTO_TCP, 20);
	tcp[0] = p->dport >> 8;
	tcp[1] = p->dport;
	tcp[2] = p->sport >> 8;
	tcp[3] = p->sport;
	tcp[12] = 5 << 4;
	tcp[13] = FLAG_RST;
	if (p->tcp_flags & FLAG_ACK) {
		put32(tcp + 4, p->ack);
	} else {
		put32(tcp + 8, segment_end(p));
		tcp[13] |= FLAG_ACK;
	}
	sum = ~fold(bpf_csum_diff(0, 0, (__be32 *)tcp, 20, pseudo_sum(p->daddr, p->saddr, PROTO_TCP, 20)));
	tcp[16] = swap16(sum) >> 8;
	tcp[17] = swap16(sum);
	if (bpf_skb_change_tail(skb, ETH_LENGTH + sizeof(h), 0))
		return -1;
	return bpf_skb_store_bytes(skb, ETH_LENGTH, h, sizeof(h), 0);
}

/* Turn the packet into an ICMP error from `source` that quotes it. Returns -1 if a helper of the kernel fails. */
INLINE int make_error(struct __sk_buff *skb, struct pkt *p, addr source)
{
	u8 h[ANSWER_HEADER] = {};
	u32 quoted = p->length > MOST_QUOTED ? MOST_QUOTED : p->length;
	u32 pseudo = 0;
	u16 sum;

	if (bpf_skb_change_tail(skb, ETH_LENGTH + quoted, 0))
		return -1;
	if (bpf_skb_adjust_room(skb, ANSWER_HEADER, BPF_ADJ_ROOM_MAC, 0))
		return -1;
	write_header(h, p, source, p->saddr, PROTO_ICMP, quoted + 8);
	h[HEADER_LENGTH] = UNREACHABLE;
	h[HEADER_LENGTH + 1] = p->reject;
	if (bpf_skb_store_bytes(skb, ETH_LENGTH, h, sizeof(h), 0))
		return -1;
	if (ICMP_HAS_PSEUDO_HEADER)
		pseudo = pseudo_sum(source, p->saddr, PROTO_ICMP, quoted + 8);
	sum = ~fold(sum_of(skb, p, ETH_LENGTH + HEADER_LENGTH, quoted + 8, pseudo));
	return bpf_skb_store_bytes(skb, ETH_LENGTH + HEADER_LENGTH + 2, &sum, 2, 0);
}

/* Close the connection of a packet that is answered with a RST, as since Linux 6.3 (nf_conntrack_tcp_set_closing). */
INLINE void close_connection(struct pkt *p)
{
	u32 zero = 0;
	struct settings *s = settings.lookup(&zero);
	struct tuple key;
	struct conn *c;

	copy_tuple(&key, &p->conn.orig);
	c = conns.lookup(&key);
	if (!s || !c || !same_tuple(&c->reply, &p->conn.reply))
		return;
	c->tcp_state = TCP_CLOSE;
	c->expires = coarse_now() + s->tcp_timeout[TCP_CLOSE] * SECOND;
}

INLINE int handle_reject(struct __sk_buff *skb, struct pkt *p)
{
	struct next_hop hop = {.family = FAMILY};
	addr via, source;
	u32 oif;
	u16 quoted_l4, quoted_segment;

	if (p->fragment == LATER_FRAGMENT)
		p->bad_sum = 1; /* reject6_csum_ok; over IPv4, no later fragment is answered */
	else if (is_unverified(p->proto))
		p->bad_sum = 0;
	else if (!p->incoming || p->looped || p->fragment || !is_summed(p->proto))
		p->bad_sum = bad_checksum(skb, p, 1);
	if (!deserves_answer(skb, p))
		return TC_ACT_SHOT;
	if (route_back(p, &oif, &via, &source))
		return TC_ACT_SHOT;
	if (p->reject == REJECT_WITH_RESET ? make_reset(skb, p) : make_error(skb, p, source))
		return failed();
	count(COUNT_REJECTED);
	if (p->reject == REJECT_WITH_RESET && p->has_ct && !p->fresh)
		close_connection(p);
	/* The answer belongs to the connection of the rejected packet (nf_ct_attach), even if it is not entered. */
	quoted_l4 = p->l4 + ANSWER_HEADER;
	quoted_segment = p->segment;
	p->quoted_proto = p->proto;
	p->quoted_ports = p->has_ports;
	p->owner = p->reject == REJECT_WITH_RESET ? OWNER_NOBODY : OWNER_KERNEL;
	p->attached = !p->has_ct && p->ct_state == CT_UNTRACKED;
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
	p->quoted = ETH_LENGTH + ANSWER_HEADER;
	p->quoted_l4 = quoted_l4;
	p->quoted_segment = quoted_segment;
	if (oif == LOOPBACK_INDEX) {
		p->answer = 1;
		set_out(p, oif);
		programs.call(skb, PROGRAM_ANSWER);
		return failed();
	}
	skb->tc_index = p->slot;
	pass(skb, p, AT_ANSWER);
	hop.address = to_wire(via);
	return redirect_to_neighbour(oif, &hop, sizeof(hop), 0);
}

/* Begin the path of an answer. */
INLINE int handle_answer(struct __sk_buff *skb, struct pkt *p)
{
	set_in(p, 0);
	RUN(chain_raw_output);
	p->incoming = p->bad_sum = 0;
	programs.call(skb, PROGRAM_TRACK);
	return failed();
}
