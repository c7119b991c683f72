/* Events out of the ordinary, counted per CPU: never on the way of a packet that only passes. */

INLINE void count(u32 which)
{
	u64 *n = counters.lookup(&which);

	if (n)
		*n += 1;
}

/* Drop a packet, for a reason. */
INLINE int lose(u32 which)
{
	count(which);
	return TC_ACT_SHOT;
}

INLINE int failed(void) { return lose(COUNT_FAILED); }
