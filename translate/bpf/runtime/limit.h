/* Token buckets of -m limit (xt_limit): each rule has one, whichever chain calls the rule's chain. */

/* limit_mt. The level of a bucket is stored as the time at which it is full again. */
INLINE int within_limit(u32 number, u64 interval, u64 capacity)
{
	struct bucket *b = buckets.lookup(&number);
	u64 now = bpf_ktime_get_ns(), full;
	int within;

	if (!b)
		return 0;
	bpf_spin_lock(&b->lock);
	full = (b->full > now ? b->full : now) + interval;
	within = full - now <= capacity;
	if (within)
		b->full = full;
	bpf_spin_unlock(&b->lock);
	return within;
}
