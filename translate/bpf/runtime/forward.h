/* Forwarding without the stack, where it would do nothing else.
 *
 * A packet whose way the kernel knows (bpf_fib_lookup: a unicast route to a neighbour that answers, through
 * which it fits) goes on to FORWARD and POSTROUTING at once, and out by bpf_redirect_neigh, which keeps asking
 * the neighbour as the stack does. Whatever the kernel would answer or drop, and all that is out of the
 * ordinary, takes the way through the stack instead (ip_forward, ip6_forward).
 */

/* The length that has to fit the route's MTU: of a GSO packet, that of one segment. 0: unknown. */
INLINE u32 longest_segment(struct __sk_buff *skb, struct pkt *p)
{
	u32 size = skb->gso_size;

	if (!size)
		return p->length;
	if (p->has_tcp)
		return HEADER_LENGTH + p->tcp_doff + size;
	return p->proto == PROTO_UDP ? HEADER_LENGTH + 8 + size : 0;
}

/* Whether the packet is now on its way to p->oif, its hop limit decremented; otherwise it is as it was. */
INLINE int forwards_directly(struct __sk_buff *skb, struct pkt *p)
{
	struct bpf_fib_lookup way = {.family = FAMILY};
	u32 fits = longest_segment(skb, p), oif;
	struct device *out;

	if (!(p->in_flags & DEVICE_DIRECT) || skb->pkt_type != FOR_THIS_HOST || p->l4 != ETH_LENGTH + HEADER_LENGTH ||
	    p->ttl <= 1 || skb->len != ETH_LENGTH + p->length || !fits || fits > 65535 || stays_on_link(p))
		return 0;
	way.ifindex = skb->ifindex;
	way.tot_len = fits;
	way.l4_protocol = p->proto;
	way.sport = swap16(p->sport);
	way.dport = swap16(p->dport);
	set_way(&way, p);
	if (bpf_fib_lookup(skb, &way, sizeof(way), 0) != BPF_FIB_LKUP_RET_SUCCESS)
		return 0;
	/* To where it came from, an ICMP redirect may be due; before Linux 6.6 a neighbour may not have answered yet. */
	oif = way.ifindex;
	if (way.family != FAMILY || oif == skb->ifindex ||
	    !(way.dmac[0] | way.dmac[1] | way.dmac[2] | way.dmac[3] | way.dmac[4] | way.dmac[5]))
		return 0;
	out = devices.lookup(&oif);
	if (!out || !(out->flags & DEVICE_DIRECT) || decrement_ttl(skb, p))
		return 0;
	p->oif = oif;
	p->out[0] = out->name[0];
	p->out[1] = out->name[1];
	p->via = next_hop_of(&way);
	return 1;
}
