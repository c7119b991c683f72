/* Connections: nf_conntrack_core.c in small.
 *
 * `conns` holds an entry under its original tuple, `replies` leads from the reply tuple to it. An
 * entry gets in only at the end of its first packet's way (confirmation), as in the kernel, so that
 * a packet that is dropped leaves nothing behind.
 *
 * All three maps hold CONNECTIONS entries. In a full one what was used least recently makes room for what is
 * new (BPF_MAP_TYPE_LRU_HASH), in each map for itself:
 *
 *   an entry of `replies` without that of `conns`: its connection is gone. A packet that finds it removes it,
 *     and is what it would be without: NEW, picked up in the middle, or INVALID.
 *   an entry of `conns` without that of `replies`: packets of the first direction look after it once in a
 *     second (keep_reachable), and enter it again, or, when another connection has that tuple, give way to it.
 *   an entry of `sources` alone is a memory of where its source was bound to: the next binding is a new one.
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
	struct tuple key, orig, *found;

	copy_tuple(&orig, &c->orig);
	copy_tuple(&key, &c->reply);
	found = replies.lookup(&key);
	if (found && same_tuple(found, &orig))
		replies.delete(&key);
	conns.delete(&orig);
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
		if (!c || !same_tuple(&c->reply, t)) {
			count(COUNT_EVICTED);
			copy_tuple(&key, t);
			replies.delete(&key);
			return 0;
		}
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

INLINE u16 touch_time(u64 now) { return now >> 30; } /* seconds, nearly */

/* See to it that replies to a connection lead to it. Returns 0 when they lead to another one, which has been
 * given its tuple after the entry was dropped: this connection is then gone. */
INLINE struct conn *keep_reachable(struct conn *c, u64 now)
{
	struct tuple orig, reply, *found;
	struct conn *other;

	copy_tuple(&orig, &c->orig);
	copy_tuple(&reply, &c->reply);
	c->touched = touch_time(now);
	found = replies.lookup(&reply);
	if (found && same_tuple(found, &orig))
		return c;
	if (found) {
		struct tuple key;

		copy_tuple(&key, found);
		other = conns.lookup(&key);
		if (other && other->expires > now && same_tuple(&other->reply, &reply)) {
			count(COUNT_OUSTED);
			conns.delete(&orig);
			return 0;
		}
	}
	count(COUNT_REGAINED);
	replies.update(&reply, &orig);
	return c;
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
	} else if (p->proto == PROTO_GRE) {
		t->dport = p->gre_key;
		return p->gre == GRE_STRANGE ? -1 : 0;
	} else if (p->proto == PROTO_ICMP || is_port_protocol(p->proto) || is_no_protocol(p->proto)) {
		return -1;
	}
	return 0;
}

/* The packet that an error of the stack is about, if it is that: the one before it on this CPU, which is still
 * under way. Forwarded but never seen at egress: anybody may quote what has left, that one only the stack. */
INLINE struct pkt *quoted_packet(struct pkt *p, struct tuple *inner, u16 id)
{
	u32 own = p->slot & (SLOTS_EACH - 1), number = p->slot - own + (own > 1 ? own - 1 : SLOTS_EACH - 1);
	struct pkt *about;

	number &= SLOTS - 1;
	about = slots.lookup(&number);
	if (!about || about->stage != AT_FORWARD || about->left_saddr != inner->src || about->left_daddr != inner->dst ||
	    about->left_id != id || about->proto != inner->proto)
		return 0;
	return about;
}

/* Whether the packet is an error of the stack about one that is UNTRACKED, as what it is about is attached
 * to it (icmp_glue_bits, nf_ct_attach). */
INLINE int is_about_untracked(struct __sk_buff *skb, struct pkt *p)
{
	struct tuple inner;
	struct pkt *about;
	u16 id;

	if (!p->has_icmp || !is_icmp_error(p->icmp_type) || parse_quoted(skb, p, &inner, &id))
		return 0;
	inner.proto = p->quoted_proto;
	about = quoted_packet(p, &inner, id);
	return about && !about->has_ct && about->ct_state == CT_UNTRACKED;
}

/* The stack gives an error that it makes the connection of the packet that it is about, entered or
 * not (icmp_glue_bits, nf_ct_attach). It makes it while that packet is under way, on the same CPU. */
INLINE int attach_error(struct pkt *p, struct tuple *inner, u16 id)
{
	struct pkt *about = quoted_packet(p, inner, id);

	if (!about || !about->has_ct)
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
	if (p->quoted_proto == PROTO_GRE) {
		if (bpf_skb_load_bytes(skb, p->quoted_l4, l4, sizeof(l4)))
			return;
		parse_gre(p, l4);
		if (p->gre == GRE_STRANGE)
			return;
		inner.dport = p->gre_key;
	} else if (p->quoted_ports || p->quoted_proto == PROTO_ICMP) {
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
	} else if (p->proto == PROTO_GRE) {
		seconds = s->gre;
		if (answered) {
			seconds = s->gre_stream;
			c->status |= ST_ASSURED;
		}
	} else if (p->proto == PROTO_SCTP) {
		seconds = answered ? s->sctp_established : s->sctp;
	} else if (p->proto == PROTO_DCCP) {
		seconds = answered ? s->dccp_open : s->dccp;
	}
	c->expires = now + seconds * SECOND;
}

/* A connection's packets may be on several CPUs at once, above all those of its two directions: what is
 * known of it is changed by one at a time. An entry of an LRU map cannot hold a lock of its own, so that
 * connections share some, by a hash of the original tuple. */
INLINE struct lock *lock_of(struct conn *c)
{
	u32 hash = (u32)c->orig.src * 0x9e3779b1u ^ (u32)c->orig.dst;

	hash = (hash ^ (c->orig.sport << 16 | c->orig.dport)) * 0x85ebca6bu;
	hash >>= 22; /* there are 1024 */
	return locks.lookup(&hash);
}

/* Give the packet its connection and state (nf_conntrack_in). It is INVALID until proven tracked. */
INLINE void track(struct __sk_buff *skb, struct pkt *p)
{
	u32 zero = 0;
	struct settings *s = settings.lookup(&zero);
	u64 now = coarse_now();
	struct conn *c;
	struct lock *l;
	u32 state;
	u8 dir = 0, fresh = 0;
	int done;

	if (!s)
		return;
	if (p->proto == PROTO_TCP) {
		p->attached = 0;
		if (!p->has_tcp || p->tcp_doff < 20 || p->segment < p->tcp_doff || !tcp_flags_valid(p->tcp_flags))
			return;
	} else if (p->proto == PROTO_UDP) {
		if (!p->has_ports || p->udp_length > p->segment || p->udp_length < 8)
			return;
	} else if (p->proto == PROTO_ICMP) {
		if (!p->has_icmp || is_icmp_unknown(p->icmp_type))
			return;
	} else if (p->proto == PROTO_UDPLITE) {
		if (is_strange_udplite(p))
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
	if (c && !dir && c->touched != touch_time(now))
		c = keep_reachable(c, now);
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
		c->touched = touch_time(now);
		p->reply_free = p->retries = 0;
	}
	l = lock_of(c);
	if (!l)
		return;
	bpf_spin_lock(&l->lock);
	state = dir || (c->status & ST_SEEN_REPLY) ? CT_ESTABLISHED : CT_NEW;
	done = TRACK_OK;
	if (p->proto == PROTO_TCP)
		done = tcp_track(p, c, dir, fresh, s, now);
	else
		refresh(p, c, s, now);
	if (dir && done != TRACK_INVALID)
		c->status |= ST_SEEN_REPLY;
	bpf_spin_unlock(&l->lock);
	if (done == TRACK_INVALID)
		return;
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

/* Results of confirm(). A connection that another of its packets has entered is CONFIRMED, too. */
enum { CONFIRMED = 0, CLASH_OF_ORIGINALS, CLASH_OF_REPLIES };

/* Whether the connection that has the original tuple is the one that was to be entered (nf_ct_resolve_clash). */
INLINE int is_entered(struct tuple *orig, struct tuple *reply)
{
	struct conn *c = conns.lookup(orig);

	return c && same_tuple(&c->reply, reply);
}

/* Enter a new connection (__nf_conntrack_confirm).
 *
 * track() has found the tuple of the packet free, and forgotten what had expired there; binding mostly
 * has asked for the reply's. Who takes one of them meanwhile makes an insertion fail. */
INLINE int confirm(struct pkt *p)
{
	struct tuple orig, reply;
	u64 now = coarse_now();

	if (!p->has_ct || !p->fresh || p->related)
		return CONFIRMED;
	copy_tuple(&orig, &p->conn.orig);
	copy_tuple(&reply, &p->conn.reply);
	if (!p->reply_free && taken(&reply, now))
		return is_entered(&orig, &reply) ? CONFIRMED : CLASH_OF_REPLIES;
	p->conn.status |= ST_CONFIRMED;
	if (conns.insert(&orig, &p->conn))
		return is_entered(&orig, &reply) ? CONFIRMED : CLASH_OF_ORIGINALS;
	if (replies.insert(&reply, &orig)) {
		/* The entry leads to a connection that is gone, or another CPU was faster just now. */
		if (!taken(&reply, now))
			replies.delete(&reply);
		if (replies.insert(&reply, &orig)) {
			conns.delete(&orig);
			return CLASH_OF_REPLIES;
		}
	}
	/* An entry that nobody has looked up is the first to go when a map is full (bpf_lru_list.c), before
	 * older ones that were: it shall wait for its answer. */
	conns.lookup(&orig);
	replies.lookup(&reply);
	count(COUNT_ENTERED);
	remember_source(p, &orig);
	p->fresh = 0;
	return CONFIRMED;
}
