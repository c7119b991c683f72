/* Tuples, and the entries of connections that they lead to.
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
