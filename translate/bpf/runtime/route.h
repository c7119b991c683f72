/* What the routing tables say of an address. The loader fills the maps from them. */

#define RTN_UNICAST 1
#define RTN_LOCAL 2
#define RTN_BROADCAST 3
#define RTN_MULTICAST 5

INLINE int is_loopback(u32 address) { return (address >> 24) == 127; }

INLINE struct local *local_entry(u32 address)
{
	struct prefix key = {.length = 32, .address = swap32(address)};

	return locals.lookup(&key);
}

/* inet_dev_addr_type: asks the local table alone. device 0: any. */
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

INLINE u32 device_flags(u32 index)
{
	struct device *d = devices.lookup(&index);

	return d ? d->flags : 0;
}

/* Whether the stack would refuse the packet's addresses (ip_route_input_slow, ip_mc_validate_source,
 * fib_validate_source). The loader sets accept_local and no rp_filter, because a source may become
 * local, or not the one it came by, only when INPUT has translated it back. */
INLINE int martian(struct pkt *p)
{
	struct prefix key = {.length = 32, .address = swap32(p->saddr)};
	u32 flags = device_flags(p->iif);
	int localnet = flags & DEVICE_ROUTE_LOCALNET;
	int group = (p->daddr >> 28) == 14;
	struct local *found;
	struct route *back;

	if ((p->saddr >> 28) == 14 || p->saddr == 0xffffffff)
		return 1;
	if (group) {
		if (is_loopback(p->saddr) && !localnet)
			return 1;
		if (p->saddr == 0)
			return (p->daddr >> 8) != 0xe00000; /* only to groups of the link */
	} else if (p->daddr == 0xffffffff || (p->saddr == 0 && p->daddr == 0)) {
		if (p->saddr == 0)
			return 0;
	} else {
		if (p->saddr == 0 || p->daddr == 0)
			return 1;
		if ((is_loopback(p->daddr) || is_loopback(p->saddr)) && !localnet)
			return 1;
	}
	found = local_entry(p->saddr);
	if (found && found->own)
		return 1;
	if (flags & (DEVICE_RP_STRICT | DEVICE_RP_LOOSE)) {
		if (found)
			return 1;
		back = routes.lookup(&key);
		if (!back)
			return 1;
		return (flags & DEVICE_RP_STRICT) && back->oif != p->iif;
	}
	return 0;
}

/* Route a packet made on the node: device and next hop. Returns -1 when there is none. */
INLINE int route_output(struct pkt *p, u32 *oif, u32 *via)
{
	struct prefix key = {.length = 32, .address = swap32(p->daddr)};
	struct local *here = local_entry(p->daddr);
	struct route *r;

	*via = p->daddr;
	if ((p->daddr >> 28) == 14 || p->daddr == 0xffffffff) {
		/* Groups go out where the source is at home (ip_route_output_key_hash_rcu). */
		struct local *home = local_entry(p->saddr);
		if (home && home->type == RTN_LOCAL) {
			*oif = home->own ? home->own : home->oif;
			return 0;
		}
	}
	if (here) {
		*oif = here->type == RTN_LOCAL ? LOOPBACK_INDEX : here->oif; /* or a broadcast there */
		return 0;
	}
	r = routes.lookup(&key);
	if (!r)
		return -1;
	*oif = r->oif;
	if (r->via)
		*via = r->via;
	return is_loopback(p->saddr) && !(device_flags(r->oif) & DEVICE_ROUTE_LOCALNET) ? -1 : 0;
}

/* Route an answer to the packet's source, and choose its own address. */
INLINE int route_back(struct pkt *p, u32 *oif, u32 *via, u32 *source)
{
	struct prefix key = {.length = 32, .address = swap32(p->saddr)};
	struct local *here = local_entry(p->saddr);
	struct route *r;

	*via = *source = p->saddr;
	if (here) {
		*oif = here->type == RTN_LOCAL ? LOOPBACK_INDEX : here->oif;
		return 0;
	}
	r = routes.lookup(&key);
	if (!r || !r->source)
		return -1;
	*oif = r->oif;
	*source = r->source;
	if (r->via)
		*via = r->via;
	return 0;
}

/* The address that masquerading uses: inet_select_addr(oif, next hop, universe). 0: none. */
INLINE u32 masquerade_address(struct pkt *p)
{
	struct prefix key = {.length = 32, .address = swap32(p->daddr)};
	struct source_prefix from = {.length = 64, .oif = p->oif};
	struct route *r = routes.lookup(&key);
	u32 *found;

	from.address = swap32(r && r->via && r->oif == p->oif ? r->via : p->daddr);
	found = primary.lookup(&from);
	return found ? *found : 0;
}
