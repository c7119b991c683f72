/* Reading a packet's headers, and rewriting them with correct checksums.
 *
 * Addresses are part of the pseudo header and ports are not, so their changes are two calls. A single call
 * with both differences would be wrong, which checksum offload hides.
 */

/* BCC 0.26 declares bpf_redirect_neigh without the length of its parameters. */
struct next_hop {
	u32 family;
	struct wire address;
	u32 spare[4 - ADDRESS_WORDS];
};
static long (*redirect_to_neighbour)(u32 ifindex, void *params, int length, u64 flags) =
	(void *)BPF_FUNC_redirect_neigh;

INLINE int is_port_protocol(u8 proto)
{
	return proto == PROTO_TCP || proto == PROTO_UDP || proto == PROTO_SCTP || proto == PROTO_DCCP ||
	       proto == PROTO_UDPLITE;
}

/* Read the first eight bytes of a GRE header (gre_pkt_to_tuple). */
INLINE void parse_gre(struct pkt *p, u8 *header)
{
	u8 version = header[1] & 7;

	p->gre_key = 0;
	if (version != 1) {
		p->gre = version ? GRE_UNKNOWN : GRE_PLAIN;
	} else if (header[2] == 0x88 && header[3] == 0x0b) { /* PPP */
		p->gre = GRE_KEYED;
		p->gre_key = header[6] << 8 | header[7];
	} else {
		p->gre = GRE_STRANGE;
	}
}

/* Read the first eight bytes of a header of IPsec (xt_esp, xt_ipcomp). */
INLINE void parse_index(struct pkt *p, u8 *header)
{
	p->spi_of = p->proto;
	if (p->proto == PROTO_ESP)
		p->spi = read32(header);
	else if (p->proto == PROTO_IPCOMP)
		p->spi = header[2] << 8 | header[3];
	else
		p->spi_of = 0;
}

/* Read the next header and the type of a Mobility Header (mh_mt6). */
INLINE void parse_mobility(struct __sk_buff *skb, struct pkt *p)
{
	u8 head[4] = {};

	p->has_mobility = p->proto == PROTO_MOBILITY && p->segment >= 6 && !bpf_skb_load_bytes(skb, p->l4, head, 4);
	p->mobility_next = head[0];
	p->mobility_type = head[2];
}

/* The length of the header before the options, by the type and whether sequence numbers are long (__dccp_hdr_len). */
INLINE u32 dccp_length(u8 type, int is_long)
{
	u32 length = is_long ? 16 : 12;

	if (type == 2) /* DATA */
		return length;
	if (type == 0) /* REQUEST */
		return length + 4;
	return length + (type == 1 || type == 7 || type > 9 ? 12 : 8); /* RESPONSE, RESET; others acknowledge */
}

#define MOST_DCCP_OPTIONS 1008 /* 255 words, without the shortest header */

/* Store which kinds of options a packet of DCCP has (dccp_find_option). */
INLINE void parse_dccp_options(struct __sk_buff *skb, struct pkt *p, u32 offset, int is_long)
{
	u32 at = dccp_length(p->dccp_type, is_long);
	u8 option[2];

	p->dccp_options[0] = p->dccp_options[1] = p->dccp_options[2] = p->dccp_options[3] = 0;
	p->has_dccp_options = p->has_dccp && offset >= at && p->segment >= offset;
	if (!p->has_dccp_options)
		return;
	for (u32 i = 0; i < MOST_DCCP_OPTIONS; i++) {
		asm volatile("" : "+r"(i));
		at = unknown(p, at);
		if (at >= offset)
			break;
		option[1] = 0;
		if (bpf_skb_load_bytes(skb, p->l4 + at, option, 1))
			break;
		p->dccp_options[option[0] >> 6] |= 1ULL << (option[0] & 63);
		if (option[0] >= 2 && at + 1 < offset && bpf_skb_load_bytes(skb, p->l4 + at + 1, option + 1, 1))
			break;
		at += option[1] ? option[1] : 1;
	}
}

/* Read the type and the options of a packet of DCCP (dccp_mt). */
INLINE void parse_dccp(struct __sk_buff *skb, struct pkt *p)
{
	u8 head[5] = {};

	p->has_dccp = p->proto == PROTO_DCCP && p->segment >= 12 && !bpf_skb_load_bytes(skb, p->l4 + 4, head, 5);
	p->dccp_type = head[4] >> 1 & 15;
	if (READS_DCCP_OPTIONS)
		parse_dccp_options(skb, p, head[0] << 2, head[4] & 1);
}

/* Read the headers into p. Returns 0, or -1 for a malformed packet, which the stack would drop, too. */
INLINE int parse(struct __sk_buff *skb, struct pkt *p)
{
	u8 l4[20] = {};

	if (parse_network(skb, p) || p->length + ETH_LENGTH > skb->len)
		return -1;
	p->has_ports = p->has_icmp = p->has_tcp = 0;
	p->sport = p->dport = p->icmp_id = p->check = p->udp_length = 0;
	p->icmp_type = p->icmp_code = p->tcp_flags = p->tcp_doff = 0;
	p->seq = p->ack = p->window = 0;
	p->spi_of = p->has_options = p->regarded = 0;
	if (READS_CLOCK)
		p->clock = seconds_now();
	if (PASSES_FRAGMENTS && p->fragment == LATER_FRAGMENT) {
		p->has_mobility = p->has_dccp = 0;
		return 0;
	}
	if (READS_MOBILITY)
		parse_mobility(skb, p);
	if (READS_DCCP)
		parse_dccp(skb, p);
	/* A frame may have padding behind the packet, which is no part of a header. */
	if (p->proto == PROTO_TCP && p->segment >= 20 && !bpf_skb_load_bytes(skb, p->l4, l4, 20)) {
		p->has_tcp = 1;
		p->seq = read32(l4 + 4);
		p->ack = read32(l4 + 8);
		p->tcp_doff = (l4[12] >> 4) << 2;
		p->tcp_flags = l4[13];
		p->window = l4[14] << 8 | l4[15];
		p->check = l4[16] << 8 | l4[17];
	} else if (p->segment < 8 || bpf_skb_load_bytes(skb, p->l4, l4, 8)) {
		return 0;
	}
	if (READS_TCP_OPTIONS)
		parse_options(skb, p);
	if (READS_INDEXES)
		parse_index(p, l4);
	if (p->proto == PROTO_ICMP) {
		p->has_icmp = 1;
		p->icmp_type = l4[0];
		p->icmp_code = l4[1];
		p->check = l4[2] << 8 | l4[3];
		p->icmp_id = l4[4] << 8 | l4[5];
	} else if (is_port_protocol(p->proto) && (p->proto != PROTO_TCP || p->has_tcp)) {
		p->has_ports = 1;
		p->sport = l4[0] << 8 | l4[1];
		p->dport = l4[2] << 8 | l4[3];
		if (p->proto != PROTO_TCP) {
			p->udp_length = l4[4] << 8 | l4[5];
			p->check = l4[6] << 8 | l4[7];
		}
	} else if (p->proto == PROTO_GRE) {
		parse_gre(p, l4);
	}
	return 0;
}

/* Read the frame that a packet came in (xt_mac, xt_pkttype); one from the loopback device has no sender. */
INLINE void parse_frame(struct __sk_buff *skb, struct pkt *p)
{
	u8 sender[6] = {};

	p->type = skb->pkt_type;
	if (p->type == LOOPED_BACK)
		p->type = is_multicast(p->daddr) ? TO_GROUP : TO_ALL;
	p->has_ether = skb->ifindex != LOOPBACK_INDEX && !bpf_skb_load_bytes(skb, 6, sender, sizeof(sender));
	p->ether_saddr = (u64)(sender[0] << 8 | sender[1]) << 32 | read32(sender + 2);
}

#define SUM_STEP(size)                                                                     \
	if (length & (size)) {                                                             \
		if (bpf_skb_load_bytes(skb, offset, b->data, size))                        \
			return 0;                                                          \
		sum = bpf_csum_diff(0, 0, (__be32 *)b->data, size, sum);                   \
		offset += (size);                                                          \
	}

/* The one's complement sum of `length` bytes at `offset`. It is computed in steps of constant sizes, as the
 * helpers require. */
INLINE u32 sum_of(struct __sk_buff *skb, struct pkt *p, u32 offset, u32 length, u32 sum)
{
	u32 zero = 0;
	struct bytes *b = scratch.lookup(&zero);
	u8 pair[4] = {}, odd[4] = {};

	if (!b)
		return 0;
	length = unknown(p, length);
	sum = unknown(p, sum);
	for (u32 i = 0; i < 128; i++) {
		/* Otherwise the compiler counts down from a number that the verifier does not know. */
		asm volatile("" : "+r"(i));
		if (i >= (length >> 9))
			break;
		if (bpf_skb_load_bytes(skb, offset, b->data, 512))
			return 0;
		sum = bpf_csum_diff(0, 0, (__be32 *)b->data, 512, sum);
		offset += 512;
	}
	SUM_STEP(256)
	SUM_STEP(128)
	SUM_STEP(64)
	SUM_STEP(32)
	SUM_STEP(16)
	SUM_STEP(8)
	SUM_STEP(4)
	if (length & 2) {
		if (bpf_skb_load_bytes(skb, offset, pair, 2))
			return 0;
		sum = bpf_csum_diff(0, 0, (__be32 *)pair, 4, sum);
		offset += 2;
	}
	if (length & 1) {
		if (bpf_skb_load_bytes(skb, offset, odd, 1))
			return 0;
		sum = bpf_csum_diff(0, 0, (__be32 *)odd, 4, sum);
	}
	return sum;
}

/* Whether conntrack refuses a UDP-Lite packet for a reason other than a wrong checksum (udplite_error). */
INLINE int is_strange_udplite(struct pkt *p)
{
	return !p->has_ports || !p->check || (p->udp_length && (p->udp_length < 8 || p->udp_length > p->segment));
}

INLINE int is_summed(u8 proto) { return proto == PROTO_TCP || proto == PROTO_UDP || proto == PROTO_ICMP; }

/* Whether the transport checksum is wrong (nf_ip_checksum at PREROUTING). The checksum of UDP-Lite is computed
 * with the protocol number of UDP (nf_checksum_partial of udplite_error), so a correct one is hardly ever
 * accepted. With `every`, all bytes of other protocols must sum to a valid checksum, as REJECT requires.
 *
 * A checksum that equals the sum of the pseudo header alone was left to the network card by another stack of
 * this machine (CHECKSUM_PARTIAL). A tc program cannot read that flag; the kernel accepts such a packet.
 */
INLINE int bad_checksum(struct __sk_buff *skb, struct pkt *p, int every)
{
	u32 sum = 0, length = p->segment;
	u8 proto = p->proto;

	if (proto == PROTO_UDPLITE) {
		if (is_strange_udplite(p))
			return 0;
		if (p->udp_length)
			length = p->udp_length; /* the coverage of its checksum */
		proto = PROTO_UDP;
	} else if (!is_summed(proto)) {
		if (!every)
			return 0;
		if (!length)
			return ICMP_HAS_PSEUDO_HEADER; /* an empty payload has no valid checksum (reject6_csum_ok) */
	}
	if (p->proto == PROTO_UDP && p->check == 0)
		return 0;
	if (bpf_csum_level(skb, BPF_CSUM_LEVEL_QUERY) >= 0)
		return 0;
	if (proto == PROTO_TCP || proto == PROTO_UDP || ICMP_HAS_PSEUDO_HEADER) {
		sum = pseudo_sum(p->saddr, p->daddr, proto, p->segment);
		if (fold(sum) == swap16(p->check))
			return 0;
	}
	proto = unknown(p, proto);
	sum = fold(sum_of(skb, p, p->l4, length, sum));
	return sum != 0xffff && (sum || is_summed(proto)); /* without a pseudo header, zeros are valid */
}

INLINE u32 check_offset(struct pkt *p)
{
	if (p->proto == PROTO_TCP)
		return p->l4 + 16;
	if (p->proto == PROTO_ICMP)
		return p->l4 + 2;
	return p->l4 + 6; /* UDP, UDP-Lite, DCCP */
}

INLINE u64 check_flags(struct pkt *p)
{
	return p->proto == PROTO_UDP || p->proto == PROTO_UDPLITE ? BPF_F_MARK_MANGLED_0 : 0;
}

INLINE int has_pseudo_header(struct pkt *p)
{
	return (p->has_ports && p->proto != PROTO_SCTP) || (ICMP_HAS_PSEUDO_HEADER && p->has_icmp);
}

/* Replace the source (which = 0) or the destination (1) address. */
INLINE void set_address(struct __sk_buff *skb, struct pkt *p, int which, addr value)
{
	struct wire old = to_wire(which ? p->daddr : p->saddr);
	struct wire new = to_wire(value);
	u32 diff;

	if (value == (which ? p->daddr : p->saddr))
		return;
	diff = bpf_csum_diff((__be32 *)&old, sizeof(old), (__be32 *)&new, sizeof(new), 0);
	if (has_pseudo_header(p))
		bpf_l4_csum_replace(skb, check_offset(p), 0, diff, BPF_F_PSEUDO_HDR | check_flags(p));
	address_changed(skb, diff);
	bpf_skb_store_bytes(skb, ETH_LENGTH + (which ? DADDR_AT : SADDR_AT), &new, sizeof(new), 0);
	if (which)
		p->daddr = value;
	else
		p->saddr = value;
}

INLINE void set_port(struct __sk_buff *skb, struct pkt *p, int which, u16 value)
{
	u16 old = swap16(which ? p->dport : p->sport);
	u16 new = swap16(value);

	if (!p->has_ports || old == new)
		return;
	if (p->proto == PROTO_SCTP)
		port_of_sctp(p, p->l4, p->segment, which, old ^ new);
	else
		bpf_l4_csum_replace(skb, check_offset(p), old, new, check_flags(p) | 2);
	bpf_skb_store_bytes(skb, p->l4 + (which ? 2 : 0), &new, 2, 0);
	if (which)
		p->dport = value;
	else
		p->sport = value;
}

/* Replace the flags of a segment (set_ect_tcp). They are the low byte of their word. */
INLINE void set_tcp_flags(struct __sk_buff *skb, struct pkt *p, u8 value)
{
	if (!p->has_tcp || p->tcp_flags == value)
		return;
	bpf_l4_csum_replace(skb, check_offset(p), swap16(p->tcp_flags), swap16(value), check_flags(p) | 2);
	bpf_skb_store_bytes(skb, p->l4 + 13, &value, 1, 0);
	p->tcp_flags = value;
}

INLINE void set_icmp_id(struct __sk_buff *skb, struct pkt *p, u16 value)
{
	u16 old = swap16(p->icmp_id);
	u16 new = swap16(value);

	if (old == new)
		return;
	bpf_l4_csum_replace(skb, p->l4 + 2, old, new, 2);
	bpf_skb_store_bytes(skb, p->l4 + 4, &new, 2, 0);
	p->icmp_id = value;
}

/* Replace two bytes of the packet that an ICMP error quotes, and correct the error's checksum for them. */
INLINE void set_quoted(struct __sk_buff *skb, struct pkt *p, u32 offset, u16 old, u16 new)
{
	bpf_l4_csum_replace(skb, p->l4 + 2, old, new, 2);
	bpf_skb_store_bytes(skb, offset, &new, 2, 0);
}
