/* Lists of -m recent (xt_recent): addresses with the time at which they were last seen.
 *
 * One map has all lists. When it is full, the kernel forgets the least recently used addresses.
 */

enum { RECENT_SET, RECENT_RCHECK, RECENT_UPDATE, RECENT_REMOVE };

/* recent_mt with one time per address. seconds 0: the time does not matter. */
INLINE int recent_of(struct recent_key key, u32 seconds, u32 mode, int negated)
{
	u64 now = bpf_ktime_get_ns();
	u64 *seen;
	int matched;

	if (mode == RECENT_SET) {
		recents.update(&key, &now);
		return !negated;
	}
	seen = recents.lookup(&key);
	if (!seen)
		return negated;
	if (mode == RECENT_REMOVE) {
		recents.delete(&key);
		return !negated;
	}
	matched = (!seconds || now - *seen <= (u64)seconds * 1000000000ULL) != negated;
	if (matched && mode == RECENT_UPDATE)
		*seen = now;
	return matched;
}

INLINE int recent(u32 list, addr address, u32 seconds, u32 mode, int negated)
{
	struct recent_key key = { .list = list, .address = to_wire(address) };

	return recent_of(key, seconds, mode, negated);
}
