/* IPv6: its addresses, and its ICMP. ipv4/address.h has the same names. */
#define FAMILY 10 /* AF_INET6 */
#define ETH_TYPE 0x86dd
#define PROTO_ICMP 58
#define LOCALHOST 1

#define ADDRESS(high, low) ((addr)(high##ULL) << 64 | (low##ULL))

/* An address in the numbers of a lookup's entry, from number n on. */
#define ADDRESS_AT(entry, n)                                                                   \
	from_words((entry)->argument[n], (entry)->argument[(n) + 1], (entry)->argument[(n) + 2], \
		   (entry)->argument[(n) + 3])

INLINE addr from_words(u32 a, u32 b, u32 c, u32 d)
{
	return (addr)((u64)a << 32 | b) << 64 | ((u64)c << 32 | d);
}

INLINE struct wire to_wire(addr a)
{
	u64 high = a >> 64, low = a;
	struct wire w = {{swap32(high >> 32), swap32(high), swap32(low >> 32), swap32(low)}};

	return w;
}

INLINE addr read_address(u8 *at) { return from_words(read32(at), read32(at + 4), read32(at + 8), read32(at + 12)); }

INLINE int is_loopback(addr a) { return a == LOCALHOST; }
INLINE int is_multicast(addr a) { return 1; } /* as xt_pkttype has it: IPv6 has no broadcasts */
INLINE int is_group(addr a) { return (u8)(a >> 120) == 0xff; }
INLINE int is_mapped(addr a) { return a >> 32 == 0xffff; } /* ::ffff:0:0/96 */
INLINE int is_of_link(addr a) { return (u16)((u64)(a >> 64) >> 54) == 0xfe80 >> 6; } /* fe80::/10 */

/* The scope of an address as an index of `near` in struct device; -1 for a global one (ipv6_addr_scope). */
enum { OF_NODE = 0, OF_LINK, OF_SITE, V4_COMPATIBLE };

INLINE int reach_of(addr a)
{
	if (is_group(a)) {
		u8 scope = (u8)(a >> 112) & 15;

		return scope == 1 ? OF_NODE : scope == 2 ? OF_LINK : scope == 5 ? OF_SITE : -1;
	}
	if (is_of_link(a))
		return OF_LINK;
	if ((u16)((u64)(a >> 64) >> 54) == 0xfec0 >> 6)
		return OF_SITE;
	if (a >> 32)
		return -1;
	return a == LOCALHOST ? OF_NODE : a ? V4_COMPATIBLE : -1;
}

/* The type of the answer to an ICMP query, or -1. */
INLINE int icmp_answer(u8 type)
{
	if (type == 128 || type == 129)
		return type ^ 1; /* echo and its reply */
	if (type == 139 || type == 140)
		return 279 - type; /* node information */
	return -1;
}

INLINE int is_icmp_request(u8 type) { return type == 128 || type == 139; }
INLINE int icmp_has_id(u8 type) { return type == 128 || type == 129; }
INLINE int is_icmp_redirect(u8 type) { return type == 137; }
INLINE int is_icmp_error(u8 type) { return type < 128 || is_icmp_redirect(type); }
INLINE int is_icmp_unknown(u8 type) { return 0; }
/* noct_valid_new: discovery of listeners, routers and neighbours; since 6.12 also of multicast routers. */
INLINE int is_icmp_untracked(u8 type) { return (type >= 130 && type <= 136) || type == 143 || type == 151 || type == 152; }

/* Protocols without a tuple: "no next header" (ipv6_skip_exthdr), and ICMP over IPv6 (nf_conntrack_icmp_packet). */
INLINE int is_no_protocol(u8 proto) { return proto == 59 || proto == 1; }

/* find_best_ips_proto: an address of a range, chosen one word at a time by the `hash` of the source. Unless
 * persistent, each word of the destination changes the hash; if the destination is bound, the chosen word. */
INLINE addr address_between(addr low, addr high, addr dst, u32 hash, int persistent, int source)
{
	struct wire from = to_wire(low), to = to_wire(high), other = to_wire(dst);
	u32 made[4] = {};
	int whole = 0;

#pragma unroll
	for (int i = 0; i < 4; i++) {
		u32 least = whole ? 0 : swap32(from.word[i]);
		u32 size = whole ? 0xffffffff : swap32(to.word[i]) - least + 1;

		made[i] = least + (u32)((u64)hash * size >> 32); /* reciprocal_scale */
		if (made[i] != swap32(to.word[i]))
			whole = 1;
		if (!persistent)
			hash ^= source ? other.word[i] : swap32(made[i]);
	}
	return from_words(made[0], made[1], made[2], made[3]);
}
