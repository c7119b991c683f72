/* What happened to connections and packets out of the ordinary, counted per CPU: never on the way of a packet
 * that only passes. backends/tc_ebpf/counters.py names them in the same order.
 */

enum counter {
	COUNT_ENTERED = 0, /* connections that were entered */
	COUNT_EVICTED,     /* replies that found their connection gone: the maps were full */
	COUNT_REGAINED,    /* connections whose reply's tuple was gone, and was entered again */
	COUNT_OUSTED,      /* connections that were forgotten because another had their reply's tuple by then */
	COUNT_RETRIED,     /* ports that another connection took just before confirmation: another one was tried */
	COUNT_LONG_SEARCH, /* searches for a port that went on after 128 were taken */
	COUNT_REJECTED,    /* packets answered for REJECT */
	/* Packets dropped, because */
	COUNT_NO_PORT,     /* no port was found free */
	COUNT_CLASH,       /* another connection had one of the tuples at confirmation */
	COUNT_FRAGMENT,    /* they were fragments */
	COUNT_MALFORMED,   /* their headers could not be read */
	COUNT_LOST_SLOT,   /* what was kept of them had been reused for another packet */
	COUNT_FAILED,      /* the kernel refused something to the program */
};
#define COUNTERS 13

BPF_TABLE("percpu_array", u32, u64, counters, COUNTERS);

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
