/* The connection of a packet, its state, and its entry in the table: a small nf_conntrack_core.c. */

/* Change the mark of the packet's connection: in the packet's copy, and in the map if it is there. */
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

/* The lock for changes of a connection, whose packets may be on several CPUs at once, above all those of its
 * two directions. An entry of an LRU map cannot contain a lock, so connections share locks by a hash of the
 * original tuple. */
INLINE struct lock *lock_of(struct conn *c)
{
	u32 hash = (u32)c->orig.src * 0x9e3779b1u ^ (u32)c->orig.dst;

	hash = (hash ^ (c->orig.sport << 16 | c->orig.dport)) * 0x85ebca6bu;
	hash >>= 22; /* there are 1024 locks */
	return locks.lookup(&hash);
}

/* Find the packet's connection and state (nf_conntrack_in). The state is INVALID unless this function sets it. */
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
	} else if (p->proto == PROTO_SCTP) {
		if (!has_sctp_chunk(skb, p))
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

/* Remember the binding of a source for its next connection. find_appropriate_src is called only if the source
 * itself is not in the range, so a connection that did not change it would never be found. */
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

/* Results of confirm(): CONFIRMED also if another packet of the connection has entered it. */
enum { CONFIRMED = 0, CLASH_OF_ORIGINALS, CLASH_OF_REPLIES };

/* Whether the table's connection with the original tuple is the same connection (nf_ct_resolve_clash). */
INLINE int is_entered(struct tuple *orig, struct tuple *reply)
{
	struct conn *c = conns.lookup(orig);

	return c && same_tuple(&c->reply, reply);
}

/* Enter a new connection (__nf_conntrack_confirm).
 *
 * track() has found the tuple of the packet free, and has removed an expired connection that had it. Binding
 * has mostly checked the reply's tuple, too. If another connection takes one of them meanwhile, an insertion
 * fails. */
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
		/* The entry is that of a connection that no longer exists, or another CPU has just made it. */
		if (!taken(&reply, now))
			replies.delete(&reply);
		if (replies.insert(&reply, &orig)) {
			conns.delete(&orig);
			return CLASH_OF_REPLIES;
		}
	}
	/* A full map first removes entries that were never looked up (bpf_lru_list.c), even if others are older.
	 * These lookups keep the new entry until its answer comes. */
	conns.lookup(&orig);
	replies.lookup(&reply);
	count(COUNT_ENTERED);
	remember_source(p, &orig);
	p->fresh = 0;
	return CONFIRMED;
}
