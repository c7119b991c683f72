/* -j TCPMSS --clamp-mss-to-pmtu (xt_TCPMSS.c): the MTU of the routes in both directions. */

#define ANY_LENGTH 65535 /* longer than most MTU, so that bpf_fib_lookup returns the MTU in tot_len */

INLINE u32 device_mtu(struct __sk_buff *skb, u32 index)
{
	u32 mtu = 0;

	return bpf_check_mtu(skb, index, &mtu, 0, 0) < 0 || mtu > ANY_LENGTH ? ANY_LENGTH : mtu;
}

/* The MTU of the route to an address through a device (dst_mtu). bpf_fib_lookup returns that of forwarded packets, for
 * which the MTU of the route itself counts only if it is locked (ip_mtu_from_fib_result). A known MTU of the path counts
 * before it. */
INLINE u32 route_mtu(struct __sk_buff *skb, addr from, addr to, u32 device)
{
	struct bpf_fib_lookup way = {.family = FAMILY, .ifindex = device, .tot_len = ANY_LENGTH};
	struct wire source = to_wire(from), target = to_wire(to);
	u32 mtu = device_mtu(skb, device), path = 0;
	struct route *r = route_entry(to);

	if (device != LOOPBACK_INDEX) {
#if ADDRESS_WORDS == 4
		__builtin_memcpy(way.ipv6_src, &source, sizeof(source));
		__builtin_memcpy(way.ipv6_dst, &target, sizeof(target));
#else
		way.ipv4_src = source.word[0];
		way.ipv4_dst = target.word[0];
#endif
		switch (bpf_fib_lookup(skb, &way, sizeof(way), BPF_FIB_LOOKUP_OUTPUT)) {
		case BPF_FIB_LKUP_RET_FRAG_NEEDED:
			path = way.tot_len;
			break;
		case BPF_FIB_LKUP_RET_SUCCESS:
		case BPF_FIB_LKUP_RET_NO_NEIGH:
			path = ANY_LENGTH;
		}
	}
	if (path && path != mtu)
		return path;
	return path && r && r->oif == device && r->mtu ? r->mtu : mtu;
}

/* The MTU of the route to the packet's source (tcpmss_reverse_mtu). */
INLINE u32 reverse_mtu(struct __sk_buff *skb, struct pkt *p)
{
	struct local *here = local_entry(p->saddr);
	struct route *r;

	if (is_of_link(p->saddr))
		return route_mtu(skb, 0, p->saddr, p->iif ? p->iif : p->oif);
	if (here)
		return route_mtu(skb, 0, p->saddr, here->type == RTN_LOCAL ? LOOPBACK_INDEX : here->oif);
	r = route_entry(p->saddr);
	return r ? route_mtu(skb, 0, p->saddr, r->oif) : ANY_LENGTH;
}

/* Returns 1 for a segment that is dropped. */
INLINE int clamp_mss(struct __sk_buff *skb, struct pkt *p)
{
	u32 there = route_mtu(skb, p->saddr, p->daddr, p->oif), back = reverse_mtu(skb, p);
	u32 mtu = there < back ? there : back;

	if (p->fragment == LATER_FRAGMENT)
		return 0;
	if (mtu <= HEADER_LENGTH + 20)
		return 1;
	return limit_mss(skb, p, mtu - HEADER_LENGTH - 20);
}
