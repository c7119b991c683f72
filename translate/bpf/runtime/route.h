/* Lookups in the routing tables that are the same for both families. The loader fills the maps. */

#define RTN_UNICAST 1
#define RTN_LOCAL 2
#define RTN_BROADCAST 3
#define RTN_ANYCAST 4
#define RTN_MULTICAST 5

/* Where a received packet goes (arrives_here). */
enum { AWAY, HERE, NOWHERE };

INLINE struct local *local_entry(addr address)
{
	struct prefix key = {.length = 32 * ADDRESS_WORDS, .address = to_wire(address)};

	return locals.lookup(&key);
}

INLINE struct route *route_entry(addr address)
{
	struct prefix key = {.length = 32 * ADDRESS_WORDS, .address = to_wire(address)};
	struct route *found;

	found = routes.lookup(&key);
	return found && found->oif ? found : 0; /* without a device: the route refuses its packets */
}

INLINE u32 device_flags(u32 index)
{
	struct device *d = devices.lookup(&index);

	return d ? d->flags : 0;
}

INLINE u32 device_group(u32 index)
{
	struct device *d = devices.lookup(&index);

	return d ? d->group : 0;
}

/* Whether the packet came in through a port of a bridge (-m physdev --physdev-is-in). */
INLINE int from_bridge(struct pkt *p)
{
	return !!(p->in_flags & DEVICE_BRIDGE);
}

/* The source address of packets to `there` that leave by a device. 0: none. */
INLINE addr source_for(u32 oif, addr there)
{
	struct source_prefix from = {.length = 32 + 32 * ADDRESS_WORDS, .oif = oif, .address = to_wire(there)};
	addr *found = primary.lookup(&from);

	return found ? *found : 0;
}
