/* Token buckets of -m limit (xt_limit), one per rule, whoever calls its chain. */

/* limit_mt: what is missing from the bucket is the time until it is full again. At zero it is full. */
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
