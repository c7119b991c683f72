/* IPv4: its addresses, and its ICMP. ipv6/address.h has the same names. */
#define FAMILY 2 /* AF_INET */
#define ETH_TYPE 0x0800
#define PROTO_ICMP 1
#define LOCALHOST 0x7f000001


/* An address in the numbers of a lookup's entry, at number n. */
#define ADDRESS_AT(entry, n) ((entry)->argument[n])

INLINE struct wire to_wire(addr a)
{
	struct wire w = {{swap32(a)}};

	return w;
}

INLINE int is_loopback(addr a) { return (a >> 24) == 127; }
INLINE int is_multicast(addr a) { return (a >> 28) == 14; }
INLINE int is_group(addr a) { return (a >> 28) >= 14; } /* or the broadcast address */
INLINE int is_of_link(addr a) { return 0; } /* no address is routed by its device alone */

/* The type of the answer to an ICMP query, or -1. */
INLINE int icmp_answer(u8 type)
{
	if ((type & ~8) == 0)
		return type ^ 8; /* echo and its reply */
	if (type >= 13 && type <= 18)
		return ((type - 13) ^ 1) + 13; /* timestamp, information, address mask */
	return -1;
}

INLINE int is_icmp_request(u8 type) { return type == 8 || type == 13 || type == 15 || type == 17; }
INLINE int icmp_has_id(u8 type) { return icmp_answer(type) >= 0; }
INLINE int is_icmp_error(u8 type)
{
	return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}
INLINE int is_icmp_redirect(u8 type) { return type == 5; }
INLINE int is_icmp_unknown(u8 type) { return type > 18; } /* NR_ICMP_TYPES */
INLINE int is_icmp_untracked(u8 type) { return 0; }

/* Protocols that conntrack does not track: ICMPv6 over IPv4 (nf_conntrack_icmpv6_packet). */
INLINE int is_no_protocol(u8 proto) { return proto == 58; }

/* find_best_ips_proto: an address of a range, chosen by the `hash` of the source. */
INLINE addr address_between(addr low, addr high, addr dst, u32 hash, int persistent, int source)
{
	return low + ((u64)hash * (high - low + 1) >> 32);
}
