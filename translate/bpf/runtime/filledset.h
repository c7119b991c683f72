/* ipsets that rules change (xt_set): an element has a time at which it ends. */

/* Whether an element is in its set (ip_set_timeout_expired). */
INLINE int is_in_set(struct set_element *e, u64 now) { return e && (!e->ends || e->ends > now); }

/* The end of an element that is added now, and remains for so many seconds; 0: it remains for ever. */
INLINE u64 end_after(u64 now, u32 seconds) { return seconds ? now + seconds * 1000000000ULL : 0; }
