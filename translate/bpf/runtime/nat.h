/* NAT: a small nf_nat_core.c. The first packet of a connection makes the bindings, which rewrite every packet. */

enum manip { MANIP_SRC, MANIP_DST };

INLINE tuple_port *key_of(struct tuple *t, int manip)
{
	/* For ICMP the identifier is the port, whichever side is bound. */
	return manip == MANIP_SRC || t->proto == PROTO_ICMP ? &t->sport : &t->dport;
}

INLINE int in_range(struct tuple *t, struct pkt *p, addr low, addr high, u32 flags)
{
	if ((flags & BIND_ADDRESS) && (t->src < low || t->src > high))
		return 0;
	if (!(flags & BIND_PORTS) || (t->proto != PROTO_ICMP && !is_port_protocol(t->proto)))
		return 1;
	return t->sport >= p->bind_port_low && t->sport <= p->bind_port_high;
}

INLINE int free_to_use(struct tuple *t, u64 now)
{
	struct tuple reply;

	return !invert(&reply, t) && !taken(&reply, now);
}

INLINE u32 rol(u32 v, int n) { return v << n | v >> (32 - n); }

#define HASH_BEGIN 0xdeadbeef /* JHASH_INITVAL */

/* __jhash_final */
INLINE u32 hash_end(u32 a, u32 b, u32 c)
{
	c ^= b; c -= rol(b, 14);
	a ^= c; a -= rol(c, 11);
	b ^= a; b -= rol(a, 25);
	c ^= b; c -= rol(b, 16);
	a ^= c; a -= rol(c, 4);
	b ^= a; b -= rol(a, 14);
	c ^= b; c -= rol(b, 24);
	return c;
}

/* jhash2 of an address as a struct nf_inet_addr: four words, of which IPv4 leaves three zero. */
INLINE u32 hash_address(addr address, u32 seed)
{
	struct wire w = to_wire(address);
	u32 a, b, c;

	a = b = c = HASH_BEGIN + (4 << 2) + seed;
	a += w.word[0];
#if ADDRESS_WORDS == 4
	b += w.word[1];
	c += w.word[2];
#endif
	a -= c; a ^= rol(c, 4);  c += b;
	b -= a; b ^= rol(a, 6);  a += c;
	c -= b; c ^= rol(b, 8);  b += a;
	a -= c; a ^= rol(c, 16); c += b;
	b -= a; b ^= rol(a, 19); a += c;
	c -= b; c ^= rol(b, 4);  b += a;
#if ADDRESS_WORDS == 4
	a += w.word[3];
#endif
	return hash_end(a, b, c);
}

#define PORTS_AT_ONCE 128
#define MOST_SEARCHES 8

enum { PORT_UNSEEN = 0, PORT_FREE, PORT_NOT_YET, PORT_NONE };

/* Choose a free port for `new` (nf_nat_l4proto_unique_tuple). 128 ports in a row are tried; PORT_NOT_YET asks the
 * caller to try another 128 from another place. PORT_UNSEEN: the only possible port was chosen without a check,
 * as was the port of a destination without a range. */
INLINE int unique_port(struct tuple *new, struct pkt *p, int manip)
{
	u64 now = coarse_now();
	u32 flags = p->bind_flags;
	struct tuple reply;
	u32 port = *key_of(new, manip), low, size, offset, found, mirrored, own;

	if (flags & BIND_PORTS) {
		low = p->bind_port_low;
		size = (u32)p->bind_port_high - low + 1;
	} else if (new->proto == PROTO_ICMP) {
		low = 0;
		size = 65536;
	} else if (manip == MANIP_DST) {
		return PORT_UNSEEN; /* without a range, the destination keeps its port */
	} else if (port >= 1024) {
		low = 1024;
		size = 64512;
	} else if (port >= 512) {
		low = 600; /* >= 512 is credential passing */
		size = 424;
	} else {
		low = 1;
		size = 511;
	}
	if (size <= 1) {
		*key_of(new, manip) = low;
		return PORT_UNSEEN;
	}
	if (invert(&reply, new))
		return PORT_UNSEEN;
	if (!p->searches && (flags & BIND_SHIFT))
		p->search_from = port - p->bind_base;
	else if (p->searches ? size > MOST_SEARCHES * PORTS_AT_ONCE : manip == MANIP_SRC || (flags & BIND_RANDOM))
		p->search_from = bpf_get_prandom_u32();
	else if (!p->searches)
		p->search_from = 0;
	else
		p->search_from += PORTS_AT_ONCE;
	offset = p->search_from;
	own = unknown(p, key_of(new, manip) == &new->sport);
	mirrored = unknown(p, manip == MANIP_SRC && new->proto != PROTO_ICMP);
	low = unknown(p, low);
	size = unknown(p, size);
	found = PORT_NONE;
	for (u32 i = 0; i < PORTS_AT_ONCE; i++) {
		asm volatile("" : "+r"(i), "+r"(mirrored)); /* otherwise clang makes two loops */
		port = low + (offset + i & 0xffff) % size;
		if (mirrored)
			reply.dport = port;
		else
			reply.sport = port;
		if (!taken(&reply, now)) {
			found = PORT_FREE;
			break;
		}
		if (i + 1 >= size)
			break;
	}
	if (own)
		new->sport = port;
	else
		new->dport = port;
	if (unknown(p, found) == PORT_FREE)
		return PORT_FREE;
	p->searches++;
	return p->searches < MOST_SEARCHES && p->searches * PORTS_AT_ONCE < size ? PORT_NOT_YET : PORT_NONE;
}

/* Set the binding of one side of a connection to `new`. */
INLINE int take(struct conn *c, struct tuple *new, int manip)
{
	struct tuple reply;

	if (invert(&reply, new))
		return -1;
	if (!same_tuple(&reply, &c->reply)) {
		copy_tuple(&c->reply, &reply);
		c->status |= manip == MANIP_SRC ? ST_SRC_NAT : ST_DST_NAT;
	}
	return 0;
}

/* Bind a source as for its last connection, if that binding is in the range and free (find_appropriate_src).
 * Otherwise return 0 and leave `new` unchanged. */
INLINE int reuse_source(struct tuple *new, struct pkt *p, addr low, addr high, u32 flags, u64 now)
{
	struct tuple key = {}, *orig;
	struct conn *other;
	addr src = new->src;
	tuple_port sport = new->sport;

	key.src = new->src;
	key.sport = new->sport;
	key.proto = new->proto;
	orig = sources.lookup(&key);
	if (!orig)
		return 0;
	copy_tuple(&key, orig);
	other = conns.lookup(&key);
	if (!other || other->expires <= now)
		return 0;
	new->src = other->reply.dst;
	new->sport = new->proto == PROTO_ICMP ? other->reply.sport : other->reply.dport;
	if (in_range(new, p, low, high, flags) && free_to_use(new, now))
		return 1;
	new->src = src;
	new->sport = sport;
	return 0;
}

/* Keep a source, or bind it as for its last connection. Returns 0 if neither is possible. */
INLINE int keep_source(struct tuple *new, struct pkt *p, addr low, addr high, u32 flags, u64 now)
{
	if (in_range(new, p, low, high, flags))
		return p->reply_free || free_to_use(new, now);
	return REUSES_SOURCES && reuse_source(new, p, low, high, flags, now);
}

/* find_best_ips_proto: choose an address by a hash of the source and, unless persistent, of the destination. */
INLINE addr choose_address(struct tuple *t, addr low, addr high, int persistent, int manip)
{
	struct wire there = to_wire(t->dst);
	u32 seed = persistent ? 0 : there.word[ADDRESS_WORDS - 1];

	if (high <= low)
		return low;
	return address_between(low, high, t->dst, hash_address(t->src, seed), persistent, manip == MANIP_SRC);
}

/* Whether the port can be kept (get_unique_tuple). */
INLINE int keeps_port(struct tuple *t, struct pkt *p, u32 flags, int manip, u64 now)
{
	u16 port = *key_of(t, manip);

	if (flags & BIND_RANDOM)
		return 0;
	if (!(flags & BIND_PORTS))
		return free_to_use(t, now);
	if ((flags & BIND_SHIFT) || p->bind_port_low == p->bind_port_high)
		return 0;
	return port >= p->bind_port_low && port <= p->bind_port_high && free_to_use(t, now);
}

/* Bind one side of a new connection (nf_nat_setup_info). Returns -1 to drop the packet, 1 if p->wanted needs
 * another port, otherwise 0. Then p->reply_free says whether the reply tuple is known to be free. */
INLINE int bind(struct pkt *p, int manip)
{
	struct tuple new;
	struct conn *c = &p->conn;
	addr low = p->bind_low, high = p->bind_high;
	u32 flags = p->bind_flags;
	u64 now = coarse_now();

	c->status |= manip == MANIP_SRC ? ST_SRC_NAT_DONE : ST_DST_NAT_DONE;
	if (invert(&new, &c->reply))
		return -1;
	if (!flags) {
		/* A null binding keeps the address; it changes the source port only if the tuple is taken. */
		flags = BIND_ADDRESS;
		low = high = manip == MANIP_SRC ? c->reply.dst : c->reply.src;
	}
	if (manip == MANIP_SRC && !(flags & BIND_RANDOM) && keep_source(&new, p, low, high, flags, now)) {
		p->reply_free = 1;
		return take(c, &new, manip);
	}
	if (flags & BIND_ADDRESS) {
		addr address = choose_address(&new, low, high, flags & BIND_PERSISTENT, manip);

		if (manip == MANIP_SRC)
			new.src = address;
		else
			new.dst = address;
	}
	p->reply_free = keeps_port(&new, p, flags, manip, now);
	if (!p->reply_free && (new.proto == PROTO_ICMP || is_port_protocol(new.proto))) {
		if (!(flags & BIND_PORTS) || p->bind_port_low != p->bind_port_high) {
			copy_tuple(&p->wanted, &new);
			return 1;
		}
		*key_of(&new, manip) = p->bind_port_low; /* the only possible port is not checked */
	}
	return take(c, &new, manip);
}

/* Rewrite the packet that an ICMP error quotes, and the error's own address (nf_nat_icmp_reply_translation). */
INLINE int translate_error(struct __sk_buff *skb, struct pkt *p, struct tuple *t, int manip)
{
	/* The quoted packet went the other way: with the source of the error, the quoted destination is
	 * rewritten. */
	int which = manip == MANIP_SRC;
	struct wire address = to_wire(manip == MANIP_SRC ? t->dst : t->src), old;
	u32 offset = p->quoted + (which ? DADDR_AT : SADDR_AT);
	u32 sum, check_at = 0;
	u16 port, old_port = 0, check = 0;

	if (p->quoted_ports && !has_bytes(p, p->quoted_l4, 8))
		return -1; /* NAT needs more of the header than conntrack (udp_manip_pkt) */
	if (bpf_skb_load_bytes(skb, offset, &old, sizeof(old)))
		return -1;
	sum = bpf_csum_diff((__be32 *)&old, sizeof(old), (__be32 *)&address, sizeof(address), 0);
	quoted_address_changed(skb, p, sum);
	bpf_skb_store_bytes(skb, offset, &address, sizeof(address), 0);

	if (p->quoted_ports || p->quoted_proto == PROTO_ICMP) {
		u32 at = p->quoted_l4 + (p->quoted_ports ? (which ? 2 : 0) : 4);
		u32 old_word, new_word;

		port = swap16(p->quoted_ports && which ? t->dport : t->sport);
		if (bpf_skb_load_bytes(skb, at, &old_port, 2))
			return -1;
		if (!p->quoted_ports && !ICMP_HAS_PSEUDO_HEADER)
			sum = 0;
		old_word = old_port;
		new_word = port;
		sum = bpf_csum_diff(&old_word, 4, &new_word, 4, sum);
		if (old_port != port)
			set_quoted(skb, p, at, old_port, port);
		if (p->quoted_proto == PROTO_SCTP)
			port_of_sctp(p, p->quoted_l4, p->quoted_segment, which, old_port ^ port);
		if (p->quoted_proto == PROTO_TCP && has_bytes(p, p->quoted_l4, 20))
			check_at = p->quoted_l4 + 16;
		else if (p->quoted_proto == PROTO_ICMP)
			check_at = p->quoted_l4 + 2;
		else if (p->quoted_proto == PROTO_UDP || p->quoted_proto == PROTO_UDPLITE)
			check_at = p->quoted_l4 + 6;
		if (check_at && !bpf_skb_load_bytes(skb, check_at, &check, 2) &&
		    (check || p->quoted_proto != PROTO_UDP)) {
			/* Before Linux 6.13 bpf_csum_diff returns 32 bits, and an addition to them could lose a carry. */
			u16 changed = ~fold((u32)fold(sum) + (u16)~check);
			if (!changed && (p->quoted_proto == PROTO_UDP || p->quoted_proto == PROTO_UDPLITE))
				changed = 0xffff;
			set_quoted(skb, p, check_at, check, changed);
		}
	}
	if (manip == MANIP_SRC)
		set_address(skb, p, 0, t->dst);
	else
		set_address(skb, p, 1, t->src);
	return 0;
}

/* Whether the bindings of the connection change this side of the packet; for a RELATED error, any side. */
INLINE int is_translated(struct pkt *p, int manip)
{
	u32 bit = manip == MANIP_SRC ? ST_SRC_NAT : ST_DST_NAT;

	if (p->related)
		bit = ST_SRC_NAT | ST_DST_NAT;
	else if (p->dir)
		bit ^= ST_SRC_NAT | ST_DST_NAT;
	return p->has_ct && (p->conn.status & bit);
}

/* Whether NAT cannot rewrite this side of a GRE header (gre_manip_pkt). */
INLINE int has_strange_gre(struct pkt *p, int manip)
{
	return p->gre == GRE_SHORT || (p->gre == GRE_UNKNOWN && manip == MANIP_DST);
}

/* Rewrite one side of the packet by the binding of its connection (nf_nat_packet). Returns -1 to drop it. */
INLINE int translate(struct __sk_buff *skb, struct pkt *p, int manip)
{
	u32 bit = manip == MANIP_SRC ? ST_SRC_NAT : ST_DST_NAT;
	struct tuple t;

	if (!p->has_ct)
		return 0;
	if (p->related && p->has_icmp && is_icmp_redirect(p->icmp_type) && (p->conn.status & (ST_SRC_NAT | ST_DST_NAT)))
		return -1; /* a redirect names addresses that are wrong on the other side of the NAT */
	if (p->dir)
		bit ^= ST_SRC_NAT | ST_DST_NAT;
	if (!(p->conn.status & bit))
		return 0;
	copy_tuple(&t, p->dir ? &p->conn.orig : &p->conn.reply);
	if (p->related && p->has_icmp) {
		if (p->quoted_proto == PROTO_GRE && has_strange_gre(p, !manip))
			return -1;
		return translate_error(skb, p, &t, manip);
	}
	if (p->proto == PROTO_GRE && has_strange_gre(p, manip))
		return -1;
	if (manip == MANIP_SRC)
		set_address(skb, p, 0, t.dst);
	else
		set_address(skb, p, 1, t.src);
	if (p->has_icmp) {
		if (icmp_has_id(p->icmp_type))
			set_icmp_id(skb, p, t.sport);
		return 0;
	}
	set_port(skb, p, manip == MANIP_DST, manip == MANIP_SRC ? t.dport : t.sport);
	return 0;
}

/* Whether the nat table must still bind this side: once for each side, for the first packet only. */
INLINE int unbound(struct pkt *p, int manip)
{
	return p->has_ct && p->fresh && !p->related &&
	       !(p->conn.status & (manip == MANIP_SRC ? ST_SRC_NAT_DONE : ST_DST_NAT_DONE));
}

/* Request a binding, for a NAT target. Returns BIND, which ends the table. */
INLINE int ask_nat(struct pkt *p, addr low, addr high, u16 port_low, u16 port_high, u16 flags)
{
	p->bind_low = low;
	p->bind_high = high;
	p->bind_port_low = port_low;
	p->bind_port_high = port_high;
	p->bind_flags = flags;
	return BIND;
}

/* NETMAP: the bits under the mask become those of the network (netmap_tg4). */
INLINE int ask_netmap(struct pkt *p, addr network, addr mask)
{
	addr new = ((p->manip == MANIP_SRC ? p->saddr : p->daddr) & ~mask) | (network & mask);

	return ask_nat(p, new, new, 0, 0, BIND_ADDRESS);
}
