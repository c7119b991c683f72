/* Routing of IPv6. ipv4/route.h has the same names. */

/* match_lookup_rt6; rules distinguish only LOCAL from all other types. device 0: any. */
INLINE u32 address_type(addr address, u32 device)
{
	struct local *found;

	if (is_group(address))
		return RTN_MULTICAST;
	found = local_entry(address);
	if (!found)
		return RTN_UNICAST;
	if (device && found->type == RTN_LOCAL && found->own != device)
		return RTN_UNICAST;
	return found->type;
}

/* Whether ip6_rcv_core drops the packet before PREROUTING. */
INLINE int not_received(struct pkt *p)
{
	u8 scope = (u8)(p->daddr >> 112) & 15;

	if (is_group(p->saddr))
		return 1;
	if (p->iif == LOOPBACK_INDEX)
		return is_group(p->daddr) && scope == 0;
	if (is_loopback(p->saddr) || is_loopback(p->daddr))
		return 1;
	return is_group(p->daddr) && scope <= 1;
}

/* IPv6 does not validate the source of a packet. */
INLINE int martian(struct pkt *p) { return 0; }
INLINE int source_refused(struct pkt *p) { return 0; }

/* Whether a packet with this source can get a route to another node. */
INLINE int allows_route(addr source) { return !is_loopback(source); }

/* Groups are delivered; the stack drops those that the node has not joined. A link-local address, or ::1, is
 * local only on its own device (rt6_need_strict). */
INLINE int arrives_here(struct pkt *p)
{
	int strict = is_of_link(p->daddr) || is_loopback(p->daddr);
	u32 type = address_type(p->daddr, strict ? p->iif : 0);

	return type == RTN_UNICAST ? AWAY : HERE;
}

/* Find device and next hop for an address; a link-local one is on `device`. Returns -1 without a route: a device
 * without a link-local address has no route to fe80::/64 either (addrconf_add_linklocal). */
INLINE int route_to(addr there, u32 device, u32 *oif, addr *via)
{
	struct local *here = local_entry(there);
	struct device *d = devices.lookup(&device);
	struct route *r;

	*via = there;
	if (here && (!is_of_link(there) || here->own == device)) {
		*oif = LOOPBACK_INDEX;
		return 0;
	}
	if (is_group(there) || (is_of_link(there) && d && d->near[OF_LINK])) {
		*oif = device;
		return 0;
	}
	r = route_entry(there);
	if (!r || (is_of_link(there) && r->oif != device))
		return -1;
	*oif = r->oif;
	if (r->via)
		*via = r->via;
	return 0;
}

/* Route a packet made on the node: find device and next hop. Returns -1 without a route. */
INLINE int route_output(struct pkt *p, u32 *oif, addr *via) { return route_to(p->daddr, p->oif, oif, via); }

/* Whether an address is an anycast address (ipv6_anycast_destination). */
INLINE int is_anycast(addr address)
{
	struct local *here = local_entry(address);
	struct route *r;

	if (here)
		return here->type == RTN_ANYCAST;
	r = route_entry(address);
	return r && r->source && r->source == address;
}

/* Route an answer to the packet's source, and choose the source of the answer (icmp6_send): the packet's
 * destination if it is an address of the node, else the source address of the input device. */
INLINE int route_back(struct pkt *p, u32 *oif, addr *via, addr *source)
{
	u32 type = address_type(p->daddr, 0);
	u32 device = p->iif ? p->iif : p->oif;

	if (p->reject != REJECT_WITH_RESET && is_anycast(p->saddr))
		return -1;
	if (route_to(p->saddr, device, oif, via))
		return -1;
	if (type == RTN_LOCAL || type == RTN_ANYCAST)
		*source = p->daddr;
	else
		*source = source_for(p->iif ? p->iif : *oif, p->saddr);
	return *source ? 0 : -1;
}

/* ipv6_dev_get_saddr for the destination, not for the next hop (nf_nat_masquerade_ipv6). 0: none. */
INLINE addr masquerade_address(struct pkt *p) { return source_for(p->oif, p->daddr); }

/* nf_nat_redirect_ipv6 */
INLINE addr redirect_address(struct pkt *p)
{
	struct device *d = devices.lookup(&p->iif);

	if (!d)
		return 0;
	switch (reach_of(p->daddr)) {
	case OF_NODE:
		return d->near[OF_NODE];
	case OF_LINK:
		return d->near[OF_LINK];
	case OF_SITE:
		return d->near[OF_SITE];
	case V4_COMPATIBLE:
		return d->near[V4_COMPATIBLE];
	default:
		return d->address;
	}
}

/* Whether the packet's source or destination is valid on this link only. */
INLINE int stays_on_link(struct pkt *p)
{
	return is_of_link(p->daddr) || is_of_link(p->saddr) || is_group(p->daddr) || p->saddr == 0;
}

INLINE void set_way(struct bpf_fib_lookup *way, struct pkt *p)
{
	struct wire from = to_wire(p->saddr), to = to_wire(p->daddr);

	way->flowinfo = swap32((u32)p->tos << 20);
	__builtin_memcpy(way->ipv6_src, &from, sizeof(from));
	__builtin_memcpy(way->ipv6_dst, &to, sizeof(to));
}

INLINE addr next_hop_of(struct bpf_fib_lookup *way) { return read_address((u8 *)way->ipv6_dst); }

/* Decrement the hop limit (ip6_forward). */
INLINE int decrement_ttl(struct __sk_buff *skb, struct pkt *p)
{
	u8 limit = p->ttl - 1;

	if (bpf_skb_store_bytes(skb, ETH_LENGTH + 7, &limit, 1, BPF_F_RECOMPUTE_CSUM))
		return -1;
	p->ttl = limit;
	return 0;
}
