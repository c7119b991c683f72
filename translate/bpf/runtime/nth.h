/* statistic --mode nth: a counter per rule, which starts again at 0 after `every` packets (xt_statistic). */

INLINE u32 count_up(u32 number, u32 every)
{
	struct turn *c = turns.lookup(&number);
	u32 now;

	if (!c)
		return every;
	bpf_spin_lock(&c->lock);
	now = c->next;
	c->next = now + 1 < every ? now + 1 : 0;
	bpf_spin_unlock(&c->lock);
	return now;
}
