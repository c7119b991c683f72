/* Tables of -m hashlimit with --hashlimit-rate-match: windows in which packets are counted. */

/* Whether few enough packets came in a window, and in the one before (hashlimit_mt_common, rateinfo_recalc). A window
 * that no packet has used for `expire` is forgotten. */
INLINE int within_window(struct hash_key key, u64 seconds, u64 rate, u64 most, u64 expire)
{
	u64 now = bpf_ktime_get_ns(), passed;
	struct hash_window fresh = {}, *w = windows.lookup(&key);
	struct lock *l = lock_of_key(&key);
	int within;

	if (!w) {
		fresh.begun = fresh.used = now;
		windows.insert(&key, &fresh);
		w = windows.lookup(&key);
	}
	if (!w || !l)
		return 1;
	bpf_spin_lock(&l->lock);
	passed = now - w->begun;
	if (now - w->used >= expire) {
		w->begun = now;
		w->packets = w->closed = 0;
	} else if (passed >= seconds * 1000000000) {
		w->closed = w->packets * seconds * 1000 > passed / 1000000 * rate;
		w->begun = now;
		w->packets = 0;
	}
	w->used = now;
	within = ++w->packets <= most && !w->closed;
	bpf_spin_unlock(&l->lock);
	return within;
}
