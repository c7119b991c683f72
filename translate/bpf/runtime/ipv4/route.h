/* Routing of IPv4. ipv6/route.h has the same names. */

#define ALL_HOSTS 0xe0000001 /* every device is a member of it */

/* inet_dev_addr_type, which reads only the local table. device 0: any. */
INLINE u32 address_type(u32 address, u32 device)
{
	struct local *found;

	if (address == 0 || address == 0xffffffff)
		return RTN_BROADCAST;
	if ((address >> 28) == 14)
		return RTN_MULTICAST;
	found = local_entry(address);
	if (found && (!device || found->oif == device))
		return found->type;
	return RTN_UNICAST;
}

/* Whether ip_rcv drops the packet before PREROUTING. */
INLINE int not_received(struct pkt *p) { return 0; }

/* Whether the stack would refuse the packet's addresses without a lookup (ip_route_input_slow,
 * ip_mc_validate_source). */
INLINE int martian(struct pkt *p)
{
	int localnet = p->in_flags & DEVICE_ROUTE_LOCALNET;
	int group = (p->daddr >> 28) == 14;

	if ((p->saddr >> 28) == 14 || p->saddr == 0xffffffff)
		return 1;
	if (group) {
		if (is_loopback(p->saddr) && !localnet)
			return 1;
		if (p->saddr == 0)
			return (p->daddr >> 8) != 0xe00000; /* allowed only to link-local groups */
	} else if (p->daddr == 0xffffffff || (p->saddr == 0 && p->daddr == 0)) {
		if (p->saddr == 0)
			return 0;
	} else {
		if (p->saddr == 0 || p->daddr == 0)
			return 1;
		if ((is_loopback(p->daddr) || is_loopback(p->saddr)) && !localnet)
			return 1;
	}
	return 0;
}

/* Whether the stack would refuse the packet's source by its own addresses and routes (fib_validate_source). The
 * loader switches off the stack's own checks (accept_local, rp_filter), because the program translates the source
 * of a reply back before them; netfilter does so after them, in INPUT. */
INLINE int source_refused(struct pkt *p)
{
	u32 flags = p->in_flags;
	int local = flags & DEVICE_ACCEPT_LOCAL;
	struct local *found;
	struct route *back;
	struct device *in;
	u32 oif;

	if (p->saddr == 0)
		return 0; /* allowed for broadcasts and link-local groups, without this check */
	found = local_entry(p->saddr);
	if (!(flags & (DEVICE_RP_STRICT | DEVICE_RP_LOOSE)))
		return found && found->own && !local;
	if (found) {
		if (found->type != RTN_LOCAL || !local)
			return 1;
		oif = found->oif;
	} else {
		back = route_entry(p->saddr);
		if (!back)
			return 1;
		oif = back->oif;
	}
	if (oif == p->iif)
		return 0;
	/* The route leads to another device: the loose check accepts that on a device with an address. */
	in = devices.lookup(&p->iif);
	return (flags & DEVICE_RP_STRICT) || !in || !in->address;
}

/* Whether the route to the source leads out of the packet's input device (rpfilter_mt of ipt_rpfilter). */
INLINE int reverse_path(struct pkt *p)
{
	struct route *back;

	if (p->iif == LOOPBACK_INDEX)
		return 1;
	if ((p->saddr >> 24) == 0 && (p->daddr == 0xffffffff || (p->daddr >> 8) == 0xe00000))
		return 1;
	if (local_entry(p->saddr))
		return 0;
	back = route_entry(p->saddr);
	return back && back->oif == p->iif;
}

/* Whether there is a route to the source out of any device (rpfilter_mt with --loose). */
INLINE int reverse_route(struct pkt *p)
{
	if (reverse_path(p))
		return 1;
	return !local_entry(p->saddr) && route_entry(p->saddr);
}

INLINE int arrives_here(struct pkt *p)
{
	u32 type = address_type(p->daddr, 0);

	if (type == RTN_MULTICAST && p->daddr != ALL_HOSTS)
		return NOWHERE; /* the node has not joined the group */
	return type == RTN_UNICAST ? AWAY : HERE;
}

/* Whether a loopback address would leave the node (__mkroute_output). */
INLINE int leaves_as_loopback(addr source, u32 oif)
{
	return is_loopback(source) && oif != LOOPBACK_INDEX && !(device_flags(oif) & DEVICE_ROUTE_LOCALNET);
}

/* Whether a packet with this source can get a route to another node (ip_route_output_key_hash_rcu). */
INLINE int allows_route(addr source)
{
	return !is_loopback(source) && (source >> 24) != 0 && (source >> 28) != 14 && source != 0xffffffff;
}

/* Route a packet made on the node: find device and next hop. Returns -1 without a route. */
INLINE int route_output(struct pkt *p, u32 *oif, addr *via)
{
	struct local *here = local_entry(p->daddr);
	struct route *r;
	u32 type;

	*via = p->daddr;
	if ((p->daddr >> 28) == 14 || p->daddr == 0xffffffff) {
		/* Groups are sent out of the device that has the source address (ip_route_output_key_hash_rcu). */
		struct local *home = local_entry(p->saddr);
		if (home && home->type == RTN_LOCAL) {
			*oif = home->own ? home->own : home->oif;
			return 0;
		}
		if (address_type(p->saddr, 0) == RTN_UNICAST)
			return -1;
	}
	if (here) {
		*oif = here->type == RTN_LOCAL ? LOOPBACK_INDEX : here->oif; /* else it is a broadcast */
		return 0;
	}
	r = route_entry(p->daddr);
	if (!r)
		return -1;
	*oif = r->oif;
	if (r->via)
		*via = r->via;
	/* ip_route_me_harder leaves out a source such as the broadcast address 127.255.255.255. */
	type = address_type(p->saddr, 0);
	return (type == RTN_UNICAST || type == RTN_LOCAL) && leaves_as_loopback(p->saddr, r->oif) ? -1 : 0;
}

/* Route an answer to the packet's source, and choose the source of the answer: the packet's destination if it
 * was for the node itself, otherwise the preferred source of the route back. */
INLINE int route_back(struct pkt *p, u32 *oif, addr *via, addr *source)
{
	struct local *here = local_entry(p->saddr);
	struct route *r;

	*via = *source = p->saddr;
	if (here) {
		*oif = here->type == RTN_LOCAL ? LOOPBACK_INDEX : here->oif;
	} else {
		r = route_entry(p->saddr);
		if (!r || !r->source)
			return -1;
		*oif = r->oif;
		*source = r->source;
		if (r->via)
			*via = r->via;
	}
	if (p->oif == 0 || p->oif == LOOPBACK_INDEX)
		*source = p->daddr;
	return leaves_as_loopback(*source, *oif) ? -1 : 0;
}

/* inet_select_addr(device, next hop, universe). 0: none. */
INLINE addr masquerade_address(struct pkt *p)
{
	struct route *r = route_entry(p->daddr);

	return source_for(p->oif, r && r->via && r->oif == p->oif ? r->via : p->daddr);
}

INLINE addr redirect_address(struct pkt *p)
{
	struct device *d = devices.lookup(&p->iif);

	return d ? d->address : 0;
}

/* Whether the packet may be for this link only; bpf_fib_lookup also finds routes for groups and broadcasts. */
INLINE int stays_on_link(struct pkt *p) { return is_group(p->daddr) || p->daddr == 0; }

INLINE void set_way(struct bpf_fib_lookup *way, struct pkt *p)
{
	way->tos = p->tos;
	way->ipv4_src = swap32(p->saddr);
	way->ipv4_dst = swap32(p->daddr);
}

INLINE addr next_hop_of(struct bpf_fib_lookup *way) { return swap32(way->ipv4_dst); }

/* Decrement the TTL and set the queueing priority by the TOS (ip_forward). If the header's checksum is wrong,
 * change nothing and return -1; the stack then handles the packet. */
INLINE int decrement_ttl(struct __sk_buff *skb, struct pkt *p)
{
	u8 ip[HEADER_LENGTH] = {};
	u32 sum;

	if (bpf_skb_load_bytes(skb, ETH_LENGTH, ip, sizeof(ip)))
		return -1;
	if (fold(bpf_csum_diff(0, 0, (__be32 *)ip, sizeof(ip), 0)) != 0xffff)
		return -1;
	sum = (u32)(ip[10] << 8 | ip[11]) + 0x100;
	sum += sum >= 0xffff;
	ip[8]--;
	ip[10] = sum >> 8;
	ip[11] = sum;
	if (bpf_skb_store_bytes(skb, ETH_LENGTH + 8, ip + 8, 4, 0))
		return -1;
	p->ttl--;
	skb->priority = (0x4444666622220000ULL >> ((p->tos >> 1 & 15) * 4)) & 15; /* ip_tos2prio */
	return 0;
}
