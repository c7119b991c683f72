/* Lists of connections for -m connlimit (nf_conncount.c): one for each rule and address, of at most COUNTED connections.
 *
 * A connection enters a list when it is new, and leaves it when a later packet finds it closed or not in the table.
 */

#define COUNT_TOGETHER 64	  /* CONNCOUNT_GC_MAX_COLLECT */
#define COUNT_UNCONFIRMED 8000000 /* ns: two jiffies, in which another CPU may still confirm a connection */

INLINE struct lock *lock_of_count(struct count_key *key)
{
	u32 hash = (key->address.word[ADDRESS_WORDS - 1] * 0x9e3779b1u ^ key->rule) * 0x85ebca6bu >> 22;

	return locks.lookup(&hash); /* there are 1024 */
}

#define AGAIN(member) (*(volatile u32 *)&(member)) /* read from memory, so that the verifier does not know it; see unknown() */

enum { COUNT_FOUND = 1, COUNT_CLOSED = 2 };

/* Whether a counted connection is in the table, and whether it is closed (already_closed). The tuple of an INVALID packet
 * may be that of a connection's answers. */
INLINE u32 state_of_counted(struct counted *item, u64 now)
{
	struct conn *c = conns.lookup(&item->tuple);

	if (!c) {
		struct tuple key, *orig = replies.lookup(&item->tuple);

		if (!orig)
			return 0;
		copy_tuple(&key, orig);
		c = conns.lookup(&key);
		if (c && !same_tuple(&c->reply, &item->tuple))
			c = 0;
	}
	if (!item->added || !c || c->expires <= now)
		return 0;
	if (c->orig.proto == PROTO_TCP && (c->tcp_state == TCP_TIME_WAIT || c->tcp_state == TCP_CLOSE))
		return COUNT_FOUND | COUNT_CLOSED;
	return COUNT_FOUND;
}

/* Remove outdated connections from a list (find_or_evict), with p->own those before the packet's own. Returns whether that
 * is in the list. */
INLINE u32 clean_list(struct pkt *p, struct count_list *list, struct lock *l, u64 now)
{
	u32 cpu = bpf_get_smp_processor_id(), found = 0;

	p->kept = 0;
	p->end = list->end;
	for (u32 i = 0; i < COUNTED; i++) {
		asm volatile("" : "+r"(i));
		struct counted *item = &list->item[i];
		u64 added = item->added;
		u32 state, to;

		if (i >= AGAIN(p->end))
			break;
		state = unknown(p, state_of_counted(item, now));
		if (!(state & COUNT_FOUND) && item->cpu != cpu && now - added < COUNT_UNCONFIRMED)
			state = COUNT_FOUND; /* another CPU is about to confirm it */
		state = unknown(p, state);
		if (AGAIN(p->own) && (state & COUNT_FOUND) && same_tuple(&item->tuple, &p->wanted)) {
			found = 1;
			break;
		}
		to = AGAIN(p->kept) & (COUNTED - 1);
		bpf_spin_lock(&l->lock);
		if (state != COUNT_FOUND) {
			if (item->added && item->added == added) {
				item->added = 0;
				list->count--;
			}
		} else if (item->added == added && !list->item[to].added) { /* close the gap before it */
			list->item[to] = *item;
			item->added = 0;
			p->kept = to + 1;
		} else {
			p->kept = i + 1;
		}
		bpf_spin_unlock(&l->lock);
	}
	found = unknown(p, found);
	bpf_spin_lock(&l->lock);
	if (!found) {
		list->checked = now;
		list->checked_count = list->count;
		if (list->end == AGAIN(p->end))
			list->end = AGAIN(p->kept);
	}
	bpf_spin_unlock(&l->lock);
	return found;
}

/* Add the packet's connection to a list, and return the number of connections. A full list has one more. */
INLINE u32 add_counted(struct pkt *p, struct count_list *list, struct lock *l, u64 now)
{
	u32 cpu = bpf_get_smp_processor_id(), place, count;
	struct counted *item;

	bpf_spin_lock(&l->lock);
	place = list->end;
	count = list->count + 1;
	if (place < COUNTED) {
		list->end = place + 1;
		item = &list->item[place];
		copy_tuple(&item->tuple, &p->wanted);
		item->added = now;
		item->cpu = cpu;
		list->count = count;
	}
	bpf_spin_unlock(&l->lock);
	return count;
}

/* The number of connections of an address with that of the packet (count_tree). 0: the packet is dropped, because it has
 * no tuple, or has ended the last connection. */
INLINE u32 count_connections(struct pkt *p, u32 rule, addr address)
{
	struct count_key key = {.rule = rule, .address = to_wire(address)};
	struct lock *l = lock_of_count(&key);
	struct count_list *list, *blank;
	u32 zero = 0, confirmed, cleans, assured;
	struct conn *c;
	u64 now = coarse_now();
	u8 dir = 0;

	if (p->has_ct) {
		copy_tuple(&p->wanted, &p->conn.orig);
		confirmed = !p->fresh;
		assured = p->conn.status & ST_ASSURED;
	} else {
		if (tuple_of(p, &p->wanted))
			return 0;
		c = find(&p->wanted, &dir, now);
		confirmed = c != 0;
		assured = c ? c->status & ST_ASSURED : 0;
	}
	confirmed = unknown(p, confirmed);
	assured = unknown(p, assured);
	if (!l)
		return 0;
	list = counted.lookup(&key);
	if (!list) {
		blank = blank_lists.lookup(&zero);
		if (!blank)
			return 0;
		counted.insert(&key, blank);
		list = counted.lookup(&key);
		if (!list)
			return 0;
		list->checked = now;
		return add_counted(p, list, l, now);
	}
	/* An established connection is not added, but others may have got into the table before they met the rule. */
	p->own = !(confirmed && assured);
	cleans = list->checked != now;
	if (AGAIN(p->own))
		cleans |= confirmed | (list->count - list->checked_count >= COUNT_TOGETHER) | (list->end >= COUNTED);
	cleans = unknown(p, cleans);
	if (cleans && clean_list(p, list, l, now))
		return list->count;
	return AGAIN(p->own) ? add_counted(p, list, l, now) : list->count;
}
