/* Forwarding without the stack, for packets that the stack would only forward.
 *
 * bpf_fib_lookup must find a unicast route with a sufficient MTU to a known neighbour. The packet then continues
 * with FORWARD and POSTROUTING at once, and leaves by bpf_redirect_neigh, which keeps the neighbour entry alive
 * as the stack does. A packet that the kernel would answer or drop, or that is unusual in any way, goes through
 * the stack instead (ip_forward, ip6_forward).
 */

/* The length that must fit the route's MTU; for a GSO packet, the length of one segment. 0: unknown. */
INLINE u32 longest_segment(struct __sk_buff *skb, struct pkt *p)
{
	u32 size = skb->gso_size;

	if (!size)
		return p->length;
	if (p->has_tcp)
		return HEADER_LENGTH + p->tcp_doff + size;
	return p->proto == PROTO_UDP ? HEADER_LENGTH + 8 + size : 0;
}

/* Return 1 if the packet can leave by p->oif; its TTL is then decremented. Otherwise it is unchanged. */
INLINE int forwards_directly(struct __sk_buff *skb, struct pkt *p)
{
	struct bpf_fib_lookup way = {.family = FAMILY};
	u32 fits = longest_segment(skb, p), oif;
	struct device *out;

	if (!(p->in_flags & DEVICE_DIRECT) || skb->pkt_type != FOR_THIS_HOST || p->l4 != ETH_LENGTH + HEADER_LENGTH ||
	    p->ttl <= 1 || skb->len != ETH_LENGTH + p->length || !fits || fits > 65535 || stays_on_link(p) ||
	    p->fragment || p->regarded) /* bpf_redirect_neigh drops a frame to a multicast address */
		return 0;
	way.ifindex = skb->ifindex;
	way.tot_len = fits;
	way.l4_protocol = p->proto;
	way.sport = swap16(p->sport);
	way.dport = swap16(p->dport);
	set_way(&way, p);
	if (bpf_fib_lookup(skb, &way, sizeof(way), 0) != BPF_FIB_LKUP_RET_SUCCESS)
		return 0;
	/* If it would leave where it came in, the stack may send an ICMP redirect. Before Linux 6.6 the lookup also
	 * succeeds for a neighbour that has not answered yet. */
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

#define LOOKUP_WITH_MARK 32 /* BPF_FIB_LOOKUP_MARK: the mark is where the answer has smac; from Linux 6.10 on */

/* Whether the packet is not for the node and no unicast route leads to its destination: the stack answers with an
 * ICMP error, and does not validate the source before (ip_route_input_slow). 0 if routing rules may depend on the
 * mark, and the kernel cannot look it up. */
INLINE int unroutable(struct __sk_buff *skb, struct pkt *p)
{
	struct bpf_fib_lookup way = {.family = FAMILY};
	u32 flags = p->in_flags & DEVICE_PLAIN_RULES ? 0 : LOOKUP_WITH_MARK;

	if (stays_on_link(p) || arrives_here(p) != AWAY)
		return 0;
	way.ifindex = skb->ifindex;
	way.l4_protocol = p->proto;
	way.sport = swap16(p->sport);
	way.dport = swap16(p->dport);
	set_way(&way, p);
	if (flags)
		__builtin_memcpy(way.smac, &p->mark, sizeof(p->mark));
	switch (bpf_fib_lookup(skb, &way, sizeof(way), flags)) {
	case BPF_FIB_LKUP_RET_BLACKHOLE:
	case BPF_FIB_LKUP_RET_UNREACHABLE:
	case BPF_FIB_LKUP_RET_PROHIBIT:
	case BPF_FIB_LKUP_RET_NOT_FWDED:
		return 1;
	}
	return 0;
}
