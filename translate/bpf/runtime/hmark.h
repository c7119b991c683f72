/* -j HMARK (xt_HMARK): a mark from a hash of addresses, ports and protocol. */

/* What is hashed. Without ports, these count as zero, whatever the rule sets. */
struct hashed_fields {
	addr src, dst;
	u32 ports; /* source << 16 | destination, or an SPI */
	u8 proto, has_ports;
};

/* Bytes of the IP packet; 0 if they are not whole in it. */
#define WITHIN(skb, p, at, to, size) \
	((at) + (size) <= ETH_LENGTH + (p)->length && !bpf_skb_load_bytes(skb, at, to, size))

/* Read the ports of a transport header, or the SPI of ESP or AH (proto_ports_offset). */
INLINE void hash_ports(struct __sk_buff *skb, struct pkt *p, struct hashed_fields *f, u32 at)
{
	u8 ports[4] = {};

	if (f->proto == PROTO_AH)
		at += 4;
	else if (!is_port_protocol(f->proto) && f->proto != PROTO_ESP)
		return;
	if (WITHIN(skb, p, at, ports, 4)) {
		f->ports = read32(ports);
		f->has_ports = 1;
	}
}

#if FAMILY == 2
/* Read what is hashed of the packet, or of the one that an ICMP error quotes (hmark_pkt_set_htuple_ipv4). Returns 0
 * without a whole header there. */
INLINE int fields_of_packet(struct __sk_buff *skb, struct pkt *p, struct hashed_fields *f)
{
	u8 ip[HEADER_LENGTH] = {};
	u8 icmp[8] = {}; /* the data of a later fragment is taken for a header */
	u32 at = p->l4;

	f->src = p->saddr;
	f->dst = p->daddr;
	f->proto = p->proto;
	if (p->proto == PROTO_ICMP && WITHIN(skb, p, at, icmp, 8) && is_icmp_error(icmp[0])) {
		at += 8;
		if (!WITHIN(skb, p, at, ip, HEADER_LENGTH))
			return 0;
		f->src = read32(ip + SADDR_AT);
		f->dst = read32(ip + DADDR_AT);
		f->proto = ip[9];
		if ((ip[6] & 0x3f) | ip[7]) /* a fragment */
			return 1;
		at += (ip[0] & 15) << 2;
	} else if (p->fragment) {
		return 1;
	}
	hash_ports(skb, p, f, at);
	return 1;
}
#else
/* Whether no header of IPv6 follows behind this number (ipv6_ext_hdr). */
INLINE int ends_headers(u8 next)
{
	return next != NEXT_HOP_BY_HOP && next != NEXT_ROUTING && next != NEXT_FRAGMENT && next != NEXT_AH &&
	       next != NEXT_DESTINATION;
}

/* Find the header that is no extension header, or the first AH (ipv6_find_hdr with IP6_FH_F_AUTH). `at` and `proto` are
 * those of the first header, and become those of the last one. Returns 1 behind a fragment header, and -1 if a header is
 * not whole. */
INLINE int find_hashed(struct __sk_buff *skb, struct pkt *p, u32 *at, u8 *proto)
{
	int fragment = 0;

	for (u32 i = 0; i <= MOST_EXTENSIONS; i++) {
		asm volatile("" : "+r"(i));
		u8 kind = *proto, head[4] = {};

		if (ends_headers(kind))
			return fragment;
		if (!WITHIN(skb, p, *at, head, 2))
			return -1;
		if (kind == NEXT_AH)
			return fragment;
		if ((kind == NEXT_ROUTING || kind == NEXT_FRAGMENT) && !WITHIN(skb, p, *at + 2, head + 2, 2))
			return -1;
		*proto = head[0];
		if (kind == NEXT_FRAGMENT) {
			fragment = 1;
			if (head[2] | (head[3] & 0xf8)) /* no header follows */
				return ends_headers(head[0]) ? 1 : -1;
			*at += 8;
		} else {
			*at += (head[1] + 1) << 3;
		}
	}
	return -1;
}

/* Read what is hashed of the packet, or of the one that an ICMP error quotes (hmark_pkt_set_htuple_ipv6). Returns 0
 * without whole headers there. */
INLINE int fields_of_packet(struct __sk_buff *skb, struct pkt *p, struct hashed_fields *f)
{
	u8 ip[HEADER_LENGTH] = {};
	u32 at = ETH_LENGTH + HEADER_LENGTH;
	int fragment = 0;
	u8 proto = 0;

	if (bpf_skb_load_bytes(skb, ETH_LENGTH + 6, &proto, 1))
		return 1;
	fragment = find_hashed(skb, p, &at, &proto);
	if (fragment < 0)
		return 1; /* zeros are hashed */
	f->src = p->saddr;
	f->dst = p->daddr;
	if (!fragment && proto == PROTO_ICMP && p->has_icmp && p->segment >= 8 && p->icmp_type && p->icmp_type < 128) {
		at += 8;
		if (!WITHIN(skb, p, at, ip, HEADER_LENGTH) || ip[0] >> 4 != 6)
			return 0;
		f->src = read_address(ip + SADDR_AT);
		f->dst = read_address(ip + DADDR_AT);
		proto = ip[6];
		at += HEADER_LENGTH;
		fragment = find_hashed(skb, p, &at, &proto);
		if (fragment < 0)
			return 0;
	}
	f->proto = proto;
	if (!fragment)
		hash_ports(skb, p, f, at);
	return 1;
}
#endif

/* The sources of both directions of the connection (hmark_ct_set_htuple). Only ICMP of IPv4 has no ports there. */
INLINE int fields_of_connection(struct pkt *p, struct hashed_fields *f)
{
	f->src = p->conn.orig.src;
	f->dst = p->conn.reply.src;
	f->ports = p->conn.orig.sport << 16 | (u16)p->conn.reply.sport;
	f->proto = p->conn.orig.proto;
	f->has_ports = f->proto != 1;
	return p->has_ct;
}

/* The exclusive or of an address's words (hmark_addr6_mask). */
INLINE u32 folded(addr a)
{
	struct wire w = to_wire(a);
	u32 word = w.word[0];

	for (int i = 1; i < ADDRESS_WORDS; i++)
		word ^= w.word[i];
	return swap32(word);
}

/* jhash_3words, whose last step is the whole of it. */
INLINE u32 hash_words(u32 a, u32 b, u32 c, u32 seed)
{
	seed += HASH_BEGIN + (3 << 2);
	return hash_end(a + seed, b + seed, c + seed);
}

/* The numbers of a rule, as HashMark has them. */
struct hash_rule {
	addr source_mask, destination_mask;
	u32 port_mask, port_set, protocol_mask, seed, modulus, offset;
};

/* Set the mark by a hash (hmark_hash): of the lower address and the higher one, and of the higher port and the lower. */
INLINE void mark_by_hash(struct pkt *p, struct hashed_fields *f, struct hash_rule r)
{
	u32 src = folded(f->src & r.source_mask), dst = folded(f->dst & r.destination_mask), ports = 0;
	u64 hash;

	if (f->has_ports) {
		ports = (f->ports & r.port_mask) | r.port_set;
		if ((ports & 0xffff) > ports >> 16)
			ports = ports << 16 | ports >> 16;
	}
	hash = hash_words(dst < src ? dst : src, dst < src ? src : dst, ports, r.seed) ^ (f->proto & r.protocol_mask);
	p->mark = (u32)(hash * r.modulus >> 32) + r.offset;
}
