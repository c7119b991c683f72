/* Tuples, and the entries of their connections.
 *
 * `conns` has the entry of each connection by its original tuple; `replies` has the original tuple by the
 * reply tuple; `sources` has the original tuple of the last connection of each source. As in the kernel, a
 * connection is entered only when its first packet has passed all hooks (confirmation), so that a dropped
 * packet leaves nothing behind.
 *
 * Each of the three maps has at most CONNECTIONS entries. When it is full, it removes the least recently used
 * ones (BPF_MAP_TYPE_LRU_HASH), independently of the other maps:
 *
 *   an entry of `replies` without one in `conns`: the connection is forgotten. A packet that finds the entry
 *     removes it, and has the state that it would have without the entry: NEW or INVALID.
 *   an entry of `conns` without one in `replies`: a packet of the original direction checks this about once a
 *     second (keep_reachable). It enters the reply tuple again; if another connection has taken it, the entry
 *     is removed.
 *   an entry of `sources` without one in `conns` has no effect: the source gets a new binding.
 */

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

/* Make the tuple of the opposite direction. Returns -1 if an ICMP type has no answer. */
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

/* Find the entry of a tuple, and the tuple's direction in it. An expired entry is removed. A later connection may have
 * the tuple in the opposite direction. A tuple that both directions have is the reply's, as in the kernel, which enters
 * that last, at the head of its list. */
INLINE struct conn *find(struct tuple *t, u8 *dir, u64 now)
{
	struct conn *c = conns.lookup(t);

	*dir = 0;
	if (c && c->expires <= now) {
		forget(c);
		c = 0;
	}
	if (c && t->src == t->dst && same_tuple(&c->reply, t))
		*dir = 1;
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

INLINE u16 touch_time(u64 now) { return now >> 30; } /* units of 2^30 ns, about a second */

/* Enter the reply tuple of a connection again if it is missing. If another connection has taken it meanwhile,
 * remove this connection and return 0. */
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

/* Make the tuple of the packet. Returns -1 if the transport header is incomplete. */
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
