/* Counters of uncommon events, one of each per CPU. A packet that simply passes increments none. */

INLINE void count(u32 which)
{
	u64 *n = counters.lookup(&which);

	if (n)
		*n += 1;
}

/* Drop a packet and count the reason. */
INLINE int lose(u32 which)
{
	count(which);
	return TC_ACT_SHOT;
}

INLINE int failed(void) { return lose(COUNT_FAILED); }
