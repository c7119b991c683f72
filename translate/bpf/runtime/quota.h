/* -m quota (xt_quota): the bytes that have reached a rule, whichever chain calls the rule's chain. */

/* quota_mt. A packet that exceeds the quota ends it. */
INLINE int within_quota(u32 number, u64 size, u32 length)
{
	struct quota *q = quotas.lookup(&number);
	int within;

	if (!q)
		return 0;
	bpf_spin_lock(&q->lock);
	within = !q->ended && q->used + length <= size;
	if (within)
		q->used += length;
	else
		q->ended = 1;
	bpf_spin_unlock(&q->lock);
	return within;
}
