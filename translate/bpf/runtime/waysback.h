/* -m rpfilter over IPv6 (ip6t_rpfilter): the routes to the source of a packet, by device. */

#define RTN_UNREACHABLE 7
#define RTN_THROW 9
#define ROW_LOCAL 0x80000000U /* the rows of the local table */

INLINE struct way_back *way_back(addr there, u32 row)
{
	struct way_key key = {.length = 32 + 32 * ADDRESS_WORDS, .row = row, .address = to_wire(there)};

	return ways_back.lookup(&key);
}

/* The type of the route to the source in a table; 0: there is none. If the source is link-local, only routes out of
 * the input device count, also those of shorter prefixes (RT6_LOOKUP_F_IFACE, fib6_backtrack). Otherwise one of
 * the longest prefix is chosen: with `loose` the first, without it one out of the input device before the first
 * (rt6_device_match). */
INLINE u32 type_back(struct pkt *p, u32 table, int loose)
{
	struct way_back *own = way_back(p->saddr, table | p->iif), *first;

	if (is_of_link(p->saddr))
		return own ? own->type : 0;
	first = way_back(p->saddr, table);
	if (!first)
		return 0;
	if (loose)
		return first->type;
	if (own && own->length == first->length)
		return own->type;
	return first->type == RTN_UNICAST ? RTN_UNREACHABLE : first->type; /* not out of this device */
}

/* rpfilter_lookup_reverse6. Without routing rules of the node, the local table is searched before the main one. */
INLINE int leads_back(struct pkt *p, int loose)
{
	u32 type;

	if (p->iif == LOOPBACK_INDEX)
		return 1;
	type = type_back(p, ROW_LOCAL, loose);
	if (!type || type == RTN_THROW)
		type = type_back(p, 0, loose);
	return type == RTN_UNICAST;
}

INLINE int reverse_path(struct pkt *p) { return leads_back(p, 0); }
INLINE int reverse_route(struct pkt *p) { return leads_back(p, 1); }
