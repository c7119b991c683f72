/* Connections: nf_conntrack_core.c in small.
 *
 * `conns` holds an entry under its original tuple, `replies` leads from the reply tuple to it. An
 * entry gets in only at the end of its first packet's way (confirmation), as in the kernel, so that
 * a packet that is dropped leaves nothing behind.
 */

#define SECOND 1000000000ULL

INLINE void copy_tuple(struct tuple *to, struct tuple *from)
{
	to->src = from->src;
	to->dst = from->dst;
	to->sport = from->sport;
	to->dport = from->dport;
	to->proto = from->proto;
}

INLINE int same_tuple(struct tuple *a, struct tuple *b)
{
	return a->src == b->src && a->dst == b->dst && a->sport == b->sport && a->dport == b->dport &&
	       a->proto == b->proto;
}

/* The tuple of the opposite direction. Returns -1 when ICMP has no answer of that type. */
INLINE int invert(struct tuple *to, struct tuple *from)
{
	to->src = from->dst;
	to->dst = from->src;
	to->proto = from->proto;
	if (from->proto == PROTO_ICMP) {
		int type = icmp_answer(from->dport >> 8);

		if (type < 0)
			return -1;
		to->sport = from->sport;
		to->dport = (u16)type << 8 | (from->dport & 255);
	} else {
		to->sport = from->dport;
		to->dport = from->sport;
	}
	return 0;
}

INLINE void forget(struct conn *c)
{
	struct tuple key;

	copy_tuple(&key, &c->reply);
	replies.delete(&key);
	copy_tuple(&key, &c->orig);
	conns.delete(&key);
}

/* The entry of a tuple, and the tuple's direction in it. What has expired is gone. */
INLINE struct conn *find(struct tuple *t, u8 *dir, u64 now)
{
	struct conn *c = conns.lookup(t);

	*dir = 0;
	if (!c) {
		struct tuple key, *orig = replies.lookup(t);
		if (!orig)
			return 0;
		copy_tuple(&key, orig);
		c = conns.lookup(&key);
		if (!c || !same_tuple(&c->reply, t))
			return 0; /* the LRU has dropped the entry but not its reply */
		*dir = 1;
	}
	if (c->expires <= now) {
		forget(c);
		return 0;
	}
	return c;
}

/* Whether a connection has this tuple (nf_conntrack_tuple_taken). */
INLINE int taken(struct tuple *t, u64 now)
{
	struct tuple key, *orig;
	struct conn *c = conns.lookup(t);

	if (c && c->expires > now)
		return 1;
	orig = replies.lookup(t);
	if (!orig)
		return 0;
	copy_tuple(&key, orig);
	c = conns.lookup(&key);
	return c && c->expires > now && same_tuple(&c->reply, t);
}

/* The tuple of the packet as it is. Returns -1 when the transport header is cut off. */
INLINE int tuple_of(struct pkt *p, struct tuple *t)
{
	t->src = p->saddr;
	t->dst = p->daddr;
	t->proto = p->proto;
	t->sport = t->dport = 0;
	if (p->has_ports) {
		t->sport = p->sport;
		t->dport = p->dport;
	} else if (p->has_icmp) {
		t->sport = p->icmp_id;
		t->dport = (u16)p->icmp_type << 8 | p->icmp_code;
	} else if (p->proto == PROTO_ICMP || is_port_protocol(p->proto) || is_no_protocol(p->proto)) {
		return -1;
	}
	return 0;
}

/* The stack gives an error that it makes the connection of the packet that it is about, entered or
 * not (icmp_glue_bits, nf_ct_attach). It makes it while that packet is under way, on the same CPU. */
INLINE int attach_error(struct pkt *p, struct tuple *inner, u16 id)
{
	u32 number = (p->slot & ~255u) | (((p->slot & 255) + 253) % 255 + 1);
	struct pkt *about;

	number &= 4095;
	about = slots.lookup(&number);
	/* Forwarded but never seen at egress: anybody may quote what has left, that one only the stack. */
	if (!about || about->stage != AT_FORWARD || !about->has_ct || about->left_saddr != inner->src || about->left_daddr != inner->dst ||
	    about->left_id != id || about->proto != inner->proto)
		return 0;
	if (about->has_ports && (about->sport != inner->sport || about->dport != inner->dport))
		return 0;
	p->conn = about->conn;
	p->dir = !about->dir;
	return 1;
}

/* An ICMP error belongs to the connection of the packet that it quotes (nf_conntrack_inet_error). */
INLINE void track_error(struct __sk_buff *skb, struct pkt *p, u64 now)
{
	u8 l4[8] = {};
	struct tuple inner, inverse;
	struct conn *c;
	u8 dir = 0;
	u16 id;

	if (parse_quoted(skb, p, &inner, &id))
		return;
	inner.proto = p->quoted_proto;
	inner.sport = inner.dport = 0;
	p->quoted_ports = is_port_protocol(p->quoted_proto);
	if (p->quoted_ports || p->quoted_proto == PROTO_ICMP) {
		if (bpf_skb_load_bytes(skb, p->quoted_l4, l4, sizeof(l4)))
			return;
		if (p->quoted_ports) {
			inner.sport = l4[0] << 8 | l4[1];
			inner.dport = l4[2] << 8 | l4[3];
		} else {
			inner.sport = l4[4] << 8 | l4[5];
			inner.dport = l4[0] << 8 | l4[1];
		}
	}
	if (!p->incoming && attach_error(p, &inner, id)) {
		/* done */
	} else {
		if (invert(&inverse, &inner))
			return;
		c = find(&inverse, &dir, now);
		if (!c || p->daddr != (dir ? c->reply.dst : c->orig.dst))
			return;
		p->conn = *c;
		p->dir = dir;
	}
	p->has_ct = 1;
	p->related = 1;
	p->ct_state = CT_RELATED;
}

/* Change the mark of the packet's connection: in its copy, and in the map once it is entered there. */
INLINE void set_connmark(struct pkt *p, u32 mark)
{
	struct tuple key;
	struct conn *c;

	p->conn.mark = mark;
	if (p->fresh)
		return;
	copy_tuple(&key, &p->conn.orig);
	c = conns.lookup(&key);
	if (c)
		c->mark = mark;
}

INLINE void refresh(struct pkt *p, struct conn *c, struct settings *s, u64 now)
{
	int answered = c->status & ST_SEEN_REPLY;
	u64 seconds = s->generic;

	if (p->proto == PROTO_ICMP) {
		seconds = s->icmp;
	} else if (p->proto == PROTO_UDP || p->proto == PROTO_UDPLITE) {
		seconds = s->udp;
		if (answered && (now > c->since || p->proto == PROTO_UDPLITE)) {
			seconds = s->udp_stream;
			c->status |= ST_ASSURED;
		}
	} else if (p->proto == PROTO_SCTP) {
		seconds = answered ? s->sctp_established : s->sctp;
	} else if (p->proto == PROTO_DCCP) {
		seconds = answered ? s->dccp_open : s->dccp;
	}
	c->expires = now + seconds * SECOND;
}

/* Give the packet its connection and state (nf_conntrack_in). It is INVALID until proven tracked. */
INLINE void track(struct __sk_buff *skb, struct pkt *p)
{
	u32 zero = 0;
	struct settings *s = settings.lookup(&zero);
	u64 now = coarse_now();
	struct conn *c;
	u32 state;
	u8 dir = 0, fresh = 0;
	int done;

	if (!s)
		return;
	if (p->proto == PROTO_TCP) {
		if (!p->has_tcp || p->tcp_doff < 20 || p->segment < p->tcp_doff || !tcp_flags_valid(p->tcp_flags))
			return;
	} else if (p->proto == PROTO_UDP) {
		if (!p->has_ports || p->udp_length > p->segment || p->udp_length < 8)
			return;
	} else if (p->proto == PROTO_ICMP) {
		if (!p->has_icmp || is_icmp_unknown(p->icmp_type))
			return;
	}
	if (p->bad_sum && s->checksum)
		return;
	if (p->has_icmp && is_icmp_untracked(p->icmp_type)) {
		p->ct_state = CT_UNTRACKED;
		return;
	}
	if (p->has_icmp && is_icmp_error(p->icmp_type)) {
		track_error(skb, p, now);
		return;
	}
	if (tuple_of(p, &p->tuple))
		return;
	if (p->proto == PROTO_TCP)
		tcp_read_options(skb, p);
	c = find(&p->tuple, &dir, now);
	if (c && p->proto == PROTO_TCP && tcp_reopens(p, c, dir)) {
		forget(c);
		c = 0;
	}
	if (!c) {
		if (p->has_icmp && !is_icmp_request(p->icmp_type))
			return;
		fresh = 1;
		dir = 0;
		c = &p->conn;
		__builtin_memset(c, 0, sizeof(*c));
		copy_tuple(&c->orig, &p->tuple);
		if (invert(&c->reply, &c->orig))
			return;
		c->since = now + 2 * SECOND;
		p->reply_free = 0;
	}
	state = dir || (c->status & ST_SEEN_REPLY) ? CT_ESTABLISHED : CT_NEW;
	done = TRACK_OK;
	if (p->proto == PROTO_TCP)
		done = tcp_track(p, c, dir, fresh, s, now);
	else
		refresh(p, c, s, now);
	if (done == TRACK_INVALID)
		return;
	if (dir)
		c->status |= ST_SEEN_REPLY;
	if (!fresh)
		p->conn = *c;
	p->has_ct = 1;
	p->fresh = fresh;
	p->dir = dir;
	p->ct_state = state;
	if (done == TRACK_KILL)
		forget(&p->conn);
}

/* Remember where a source was bound to, for its next connection: find_appropriate_src is only asked where
 * the source is not in range as it is, so that a connection that left it as it was never answers. */
INLINE void remember_source(struct pkt *p, struct tuple *orig)
{
	struct tuple source = {};

	if (!REUSES_SOURCES || !(p->conn.status & ST_SRC_NAT))
		return;
	source.src = orig->src;
	source.sport = orig->sport;
	source.proto = orig->proto;
	sources.update(&source, orig);
}

/* Enter a new connection (__nf_conntrack_confirm). Returns -1 when another one was faster.
 *
 * track() has found the tuple of the packet free, and forgotten what had expired there; binding mostly
 * has asked for the reply's. Who takes one of them meanwhile makes an insertion fail. */
INLINE int confirm(struct pkt *p)
{
	struct tuple orig, reply;
	u64 now = coarse_now();

	if (!p->has_ct || !p->fresh || p->related)
		return 0;
	copy_tuple(&orig, &p->conn.orig);
	copy_tuple(&reply, &p->conn.reply);
	if (!p->reply_free && taken(&reply, now))
		return -1;
	p->conn.status |= ST_CONFIRMED;
	if (conns.insert(&orig, &p->conn))
		return -1;
	if (replies.insert(&reply, &orig)) {
		/* What is there leads to an entry that is gone, or somebody was faster just now. */
		if (taken(&reply, now) || replies.update(&reply, &orig)) {
			conns.delete(&orig);
			return -1;
		}
	}
	remember_source(p, &orig);
	p->fresh = 0;
	return 0;
}
