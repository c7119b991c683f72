/* The IPv6 header and its extension headers. ipv4/header.h has the same names. */

#define SADDR_AT 8
#define DADDR_AT 24
#define HEADER_LENGTH 40
#define ICMP_HAS_PSEUDO_HEADER 1

/* More extension headers than any sender needs; a packet with more is dropped. */
#define MOST_EXTENSIONS 8

enum { NEXT_HOP_BY_HOP = 0, NEXT_ROUTING = 43, NEXT_FRAGMENT = 44, NEXT_AH = 51, NEXT_DESTINATION = 60 };

/* Find the transport header (ipv6_skip_exthdr). `offset` and `proto` are those of the first header, and become
 * those of the last one. The fields of the other headers are stored in p unless it is 0 (ipv6_find_hdr).
 * Returns 0, FIRST_FRAGMENT, LATER_FRAGMENT, or -1 if there are too many headers. */
INLINE int skip_extensions(struct __sk_buff *skb, u32 *offset, u8 *proto, struct pkt *p)
{
	int fragment = 0;
	u8 head[4] = {};

	for (u32 i = 0; i <= MOST_EXTENSIONS; i++) {
		asm volatile("" : "+r"(i));
		u8 kind = *proto;

		if (kind != NEXT_HOP_BY_HOP && kind != NEXT_ROUTING && kind != NEXT_FRAGMENT && kind != NEXT_AH &&
		    kind != NEXT_DESTINATION)
			return fragment;
		if (bpf_skb_load_bytes(skb, *offset, head, sizeof(head)))
			return -1;
		*proto = head[0];
		if (READS_OPTIONS && p && kind == NEXT_HOP_BY_HOP && !p->has_hop) {
			p->has_hop = 1;
			p->hop_length = head[1];
			p->hop_at = *offset;
		}
		if (READS_OPTIONS && p && kind == NEXT_DESTINATION && !p->has_destination) {
			p->has_destination = 1;
			p->destination_length = head[1];
			p->destination_at = *offset;
		}
		if (READS_AH && p && kind == NEXT_AH && !p->ah_at)
			p->ah_at = *offset;
		if (READS_ROUTING && p && kind == NEXT_ROUTING && !p->has_routing) {
			p->has_routing = 1;
			p->routing_length = head[1];
			p->routing_type = head[2];
			p->routing_left = head[3];
			p->routing_at = *offset;
		}
		if (p && kind == NEXT_FRAGMENT && !p->fragment_at) {
			p->fragment_at = *offset;
			p->fragment_word = head[2] << 8 | head[3];
			p->fragment_reserved = head[1];
		}
		if (kind == NEXT_FRAGMENT) {
			if (head[2] | (head[3] & 0xf9)) /* it has an offset, or more fragments follow */
				fragment = FIRST_FRAGMENT;
			if (head[2] | (head[3] & 0xf8))
				return LATER_FRAGMENT; /* no header follows */
			*offset += 8;
		} else if (kind == NEXT_AH) {
			*offset += (head[1] + 2) << 2;
		} else {
			*offset += (head[1] + 1) << 3;
		}
	}
	return -1;
}

/* Read the first bytes of the routing header, and what follows a shorter one (srh1_mt6, rt_mt6): eight bytes, the
 * first address and the second. */
INLINE void parse_segments(struct __sk_buff *skb, struct pkt *p)
{
	u32 left = ETH_LENGTH + p->length - p->routing_at;

	p->routing_size = 0;
	if (!p->has_routing || left < 8 || bpf_skb_load_bytes(skb, p->routing_at, p->routing, 8))
		return;
	p->routing_size = 8;
	if (left < 24 || bpf_skb_load_bytes(skb, p->routing_at + 8, p->routing + 8, 16))
		return;
	p->routing_size = 24;
	if (left < 40 || bpf_skb_load_bytes(skb, p->routing_at + 24, p->routing + 24, 16))
		return;
	p->routing_size = 40;
}

/* An identifier from length and flow label. It differs between most packets and does not change on the path. */
INLINE u16 id_of(u8 *ip) { return (ip[2] ^ ip[4]) << 8 | (ip[3] ^ ip[5]); }

INLINE int is_damaged(struct __sk_buff *skb, struct pkt *p) { return 0; }

/* Read the network headers into p. Returns 0, or -1 for a malformed IPv6 packet. */
INLINE int parse_network(struct __sk_buff *skb, struct pkt *p)
{
	u8 ip[40] = {};
	u32 offset = ETH_LENGTH + HEADER_LENGTH;
	u8 proto;
	int found;

	if (bpf_skb_load_bytes(skb, ETH_LENGTH, ip, sizeof(ip)))
		return -1;
	if ((ip[0] >> 4) != 6)
		return -1;
	p->tos = ip[0] << 4 | ip[1] >> 4;
	p->length = HEADER_LENGTH + (ip[4] << 8 | ip[5]);
	p->ip_id = id_of(ip);
	p->ttl = ip[7];
	p->saddr = read_address(ip + SADDR_AT);
	p->daddr = read_address(ip + DADDR_AT);
	proto = ip[6];
	p->has_routing = p->has_hop = p->has_destination = p->ah_at = p->fragment_at = 0;
	found = skip_extensions(skb, &offset, &proto, p);
	p->proto = proto;
	p->fragment = found > 0 ? found : 0;
	if (READS_FRAGMENTS && p->fragment_at) {
		if (bpf_skb_load_bytes(skb, p->fragment_at + 4, ip, 4))
			return -1;
		p->fragment_id = read32(ip);
	}
	if (READS_AH)
		parse_ah(skb, p, p->ah_at);
	if (READS_SEGMENTS)
		parse_segments(skb, p);
	p->l4 = offset;
	p->segment = p->length + ETH_LENGTH - offset;
	return found < 0 || p->length + ETH_LENGTH < offset ? -1 : 0;
}

#define MOST_BEFORE_FRAGMENT 32 /* the most bytes, in units of 8, of headers before a fragment header that is removed */

/* Remove the fragment header of a packet in one piece, as conntrack does (nf_ct_frag6_reasm), and keep its fields in
 * step. Returns -1 if this fails. */
INLINE int strip_fragment_header(struct __sk_buff *skb, struct pkt *p)
{
	u32 begin = ETH_LENGTH + HEADER_LENGTH, before = (p->fragment_at - begin) >> 3, length = p->length - HEADER_LENGTH;
	u32 named_at = ETH_LENGTH + 6, at = begin;
	u8 next = 0, head[8] = {}, size[2] = {};

	if (before > MOST_BEFORE_FRAGMENT || bpf_skb_load_bytes(skb, p->fragment_at, &next, 1) || next == NEXT_FRAGMENT)
		return -1;
	/* the place of the byte that names the fragment header */
	for (u32 i = 0; i < MOST_EXTENSIONS; i++) {
		asm volatile("" : "+r"(i));
		if (at >= p->fragment_at)
			break;
		if (bpf_skb_load_bytes(skb, at, head, 4))
			return -1;
		named_at = at;
		at += (head[1] + 1) << 3;
	}
	if (at != p->fragment_at) /* behind an AH header, whose length has another unit */
		return -1;
	if (bpf_skb_store_bytes(skb, named_at, &next, 1, BPF_F_RECOMPUTE_CSUM))
		return -1;
	/* move the headers before it to its end */
	for (u32 i = 0; i < MOST_BEFORE_FRAGMENT; i++) {
		asm volatile("" : "+r"(i));
		at -= 8;
		if (i >= before)
			break;
		if (bpf_skb_load_bytes(skb, at, head, 8) || bpf_skb_store_bytes(skb, at + 8, head, 8, BPF_F_RECOMPUTE_CSUM))
			return -1;
	}
	if (bpf_skb_adjust_room(skb, -8, BPF_ADJ_ROOM_NET, BPF_F_ADJ_ROOM_NO_CSUM_RESET))
		return -1;
	p->ip_id ^= length ^ (length - 8);
	length -= 8;
	size[0] = length >> 8;
	size[1] = length;
	if (bpf_skb_store_bytes(skb, ETH_LENGTH + 4, size, 2, BPF_F_RECOMPUTE_CSUM))
		return -1;
	p->length -= 8;
	p->l4 -= 8;
	if (p->routing_at > p->fragment_at)
		p->routing_at -= 8;
	if (p->ah_at > p->fragment_at)
		p->ah_at -= 8;
	if (p->mss_at)
		p->mss_at -= 8;
	p->fragment_at = 0;
	return 0;
}

/* Read the headers of the packet that an ICMPv6 error quotes. Returns -1 if conntrack would not accept it. */
INLINE int parse_quoted(struct __sk_buff *skb, struct pkt *p, struct tuple *inner, u16 *id)
{
	u8 ip[40] = {};
	u8 option = 0, proto;
	u32 offset;
	int found;

	p->quoted = p->l4 + 8;
	if (is_icmp_redirect(p->icmp_type)) {
		/* nf_conntrack_icmpv6_redirect: the redirect must be from a router of the link, and quote the packet in its
		 * first option. */
		p->quoted = p->l4 + 48;
		if (p->icmp_code || p->ttl != 255 || !is_of_link(p->saddr))
			return -1;
		if (bpf_skb_load_bytes(skb, p->l4 + 40, &option, 1) || option != 4)
			return -1;
	}
	if (!has_bytes(p, p->quoted, sizeof(ip)) || bpf_skb_load_bytes(skb, p->quoted, ip, sizeof(ip)))
		return -1;
	offset = p->quoted + HEADER_LENGTH;
	proto = ip[6];
	found = skip_extensions(skb, &offset, &proto, 0);
	if (found < 0 || found == LATER_FRAGMENT || is_no_protocol(proto)) /* ipv6_get_l4proto */
		return -1;
	p->quoted_l4 = offset;
	p->quoted_segment = (ip[4] << 8 | ip[5]) - (offset - p->quoted - HEADER_LENGTH);
	p->quoted_proto = proto;
	inner->src = read_address(ip + SADDR_AT);
	inner->dst = read_address(ip + DADDR_AT);
	*id = id_of(ip);
	return 0;
}

INLINE u32 pseudo_sum(addr src, addr dst, u8 proto, u32 length)
{
	struct wire parts[2] = {to_wire(src), to_wire(dst)};
	u32 words[2] = {swap32(length), swap32(proto)};
	u32 sum = bpf_csum_diff(0, 0, (__be32 *)parts, sizeof(parts), 0);

	return bpf_csum_diff(0, 0, (__be32 *)words, sizeof(words), sum);
}

/* Correct the sum of the whole packet that hardware has computed (CHECKSUM_COMPLETE) for a changed address.
 *
 * bpf_l4_csum_replace has already counted the change of the transport checksum there. That is enough for IPv4,
 * whose header always sums to zero, but IPv6 has no checksum that makes up for the address.
 */
INLINE void address_changed(struct __sk_buff *skb, u32 diff) { bpf_csum_update(skb, diff); }

/* Correct the error's checksum for a changed address in the quoted header, which has no checksum. */
INLINE void quoted_address_changed(struct __sk_buff *skb, struct pkt *p, u32 diff)
{
	bpf_l4_csum_replace(skb, p->l4 + 2, 0, diff, 0);
}

/* The traffic class is in two bytes, between the version and the flow label. */
INLINE void set_tos(struct __sk_buff *skb, struct pkt *p, u8 value)
{
	u8 ip[2] = {};

	if (p->tos == value || bpf_skb_load_bytes(skb, ETH_LENGTH, ip, sizeof(ip)))
		return;
	ip[0] = (ip[0] & 0xf0) | value >> 4;
	ip[1] = (ip[1] & 0x0f) | value << 4;
	bpf_skb_store_bytes(skb, ETH_LENGTH, ip, sizeof(ip), BPF_F_RECOMPUTE_CSUM);
	p->tos = value;
}

INLINE void set_ttl(struct __sk_buff *skb, struct pkt *p, u8 value)
{
	if (p->ttl == value)
		return;
	bpf_skb_store_bytes(skb, ETH_LENGTH + 7, &value, 1, BPF_F_RECOMPUTE_CSUM);
	p->ttl = value;
}

/* The fields whose change makes a packet made here be routed again (ip6t_mangle_out). */
INLINE u32 routed_by(struct pkt *p) { return p->tos << 8 | p->ttl; }

/* The hardware address for a multicast address (ipv6_eth_mc_map). */
INLINE void group_mac(u8 *mac, addr group)
{
	mac[0] = mac[1] = 0x33;
	mac[2] = group >> 24;
	mac[3] = group >> 16;
	mac[4] = group >> 8;
	mac[5] = group;
}
