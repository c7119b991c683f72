/* Connections of ICMP errors: that of the packet that an error quotes (nf_conntrack_proto_icmp.c). */

/* Return the packet that an error of the stack quotes, or 0 if the error is not the stack's. The stack sends an
 * error while the quoted packet is in it, so that packet has the slot before this one on this CPU and has not
 * reached egress. A packet that has left can be quoted by any host. */
INLINE struct pkt *quoted_packet(struct pkt *p, struct tuple *inner, u16 id)
{
	u32 own = p->slot & (SLOTS_EACH - 1), number = p->slot - own + (own > 1 ? own - 1 : SLOTS_EACH - 1);
	struct pkt *about;

	number &= SLOTS - 1;
	about = slots.lookup(&number);
	if (!about || about->stage != AT_FORWARD || about->left_saddr != inner->src || about->left_daddr != inner->dst ||
	    about->left_id != id || about->proto != inner->proto)
		return 0;
	return about;
}

/* Whether the packet is an error of the stack about an UNTRACKED packet, from which it inherits this state
 * (icmp_glue_bits, nf_ct_attach). */
INLINE int is_about_untracked(struct __sk_buff *skb, struct pkt *p)
{
	struct tuple inner;
	struct pkt *about;
	u16 id;

	if (!p->has_icmp || !is_icmp_error(p->icmp_type) || parse_quoted(skb, p, &inner, &id))
		return 0;
	inner.proto = p->quoted_proto;
	about = quoted_packet(p, &inner, id);
	return about && !about->has_ct && about->ct_state == CT_UNTRACKED;
}

/* Attach an error of the stack to the connection of the packet that it quotes, which may not be entered yet
 * (icmp_glue_bits, nf_ct_attach). Returns 0 for any other error. */
INLINE int attach_error(struct pkt *p, struct tuple *inner, u16 id)
{
	struct pkt *about = quoted_packet(p, inner, id);

	if (!about || !about->has_ct)
		return 0;
	if (about->has_ports && (about->sport != inner->sport || about->dport != inner->dport))
		return 0;
	p->conn = about->conn;
	p->dir = !about->dir;
	return 1;
}

/* Attach an ICMP error to the connection of the packet that it quotes (nf_conntrack_inet_error). */
INLINE void track_error(struct __sk_buff *skb, struct pkt *p, u64 now)
{
	u8 l4[8] = {};
	struct tuple inner, inverse;
	struct conn *c;
	u8 dir = 0;
	u16 id;

	if (parse_quoted(skb, p, &inner, &id))
		return;
	if (!has_bytes(p, p->quoted_l4, 0))
		return;
	inner.proto = p->quoted_proto;
	inner.sport = inner.dport = 0;
	p->quoted_ports = is_port_protocol(p->quoted_proto);
	if (p->quoted_proto == PROTO_GRE) {
		p->gre = GRE_SHORT;
		p->gre_key = 0;
		if (has_bytes(p, p->quoted_l4, 8) && !bpf_skb_load_bytes(skb, p->quoted_l4, l4, sizeof(l4)))
			parse_gre(p, l4);
		if (p->gre == GRE_STRANGE)
			return;
		inner.dport = p->gre_key;
	} else if (p->quoted_ports) { /* the rest of the header may be missing (nf_ct_get_tuple_ports) */
		if (!has_bytes(p, p->quoted_l4, 4) || bpf_skb_load_bytes(skb, p->quoted_l4, l4, 4))
			return;
		inner.sport = l4[0] << 8 | l4[1];
		inner.dport = l4[2] << 8 | l4[3];
	} else if (p->quoted_proto == PROTO_ICMP) {
		if (!has_bytes(p, p->quoted_l4, 8) || bpf_skb_load_bytes(skb, p->quoted_l4, l4, sizeof(l4)))
			return;
		inner.sport = l4[4] << 8 | l4[5];
		inner.dport = l4[0] << 8 | l4[1];
	}
	if (!p->incoming && attach_error(p, &inner, id)) {
		/* done */
	} else {
		if (invert(&inverse, &inner))
			return;
		c = find(&inverse, &dir, now);
		if (!c || p->daddr != (dir ? c->reply.dst : c->orig.dst))
			return;
		p->conn = *c;
		p->dir = dir;
	}
	p->has_ct = 1;
	p->related = 1;
	p->ct_state = CT_RELATED;
}
