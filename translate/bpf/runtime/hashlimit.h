/* Tables of -m hashlimit (xt_hashlimit): token buckets, one for each key.
 *
 * One map has all tables. When it is full, the kernel forgets the least recently used buckets.
 */

/* The bytes that count as ports (hashlimit_init_dst): of ESP and AH, the two halves of the SPI; of a later fragment over
 * IPv4, the first bytes. */
INLINE u32 hashed_ports(struct __sk_buff *skb, struct pkt *p)
{
	u32 at = p->l4 + (p->proto == PROTO_AH ? 4 : 0), ports = 0;

	if (p->has_ports)
		return p->sport << 16 | p->dport;
	if (p->fragment == LATER_FRAGMENT && (FAMILY == 10 || (!is_port_protocol(p->proto) && p->proto != PROTO_ESP &&
							       p->proto != PROTO_AH)))
		return 0;
	if ((p->fragment == LATER_FRAGMENT || p->proto == PROTO_ESP || p->proto == PROTO_AH) && !bpf_skb_load_bytes(skb, at, &ports, 4))
		return swap32(ports);
	return 0;
}

INLINE struct lock *lock_of_key(struct hash_key *key)
{
	u32 hash = (key->saddr.word[ADDRESS_WORDS - 1] * 0x9e3779b1u ^ key->daddr.word[ADDRESS_WORDS - 1] ^
		    key->ports) * 0x85ebca6bu >> 22;

	return locks.lookup(&hash); /* there are 1024 */
}

/* Whether the bucket of a key has a token, which is then removed (hashlimit_mt_common). The level of a bucket is stored
 * as the time at which it is full again. A bucket that no packet has used for `expire` is full. */
INLINE int within_hash_limit(struct hash_key key, u64 interval, u64 capacity, u64 expire)
{
	u64 now = bpf_ktime_get_ns(), full;
	struct hash_bucket fresh = {}, *b = hashed.lookup(&key);
	struct lock *l = lock_of_key(&key);
	int within;

	if (!b) {
		hashed.insert(&key, &fresh);
		b = hashed.lookup(&key);
	}
	if (!b || !l)
		return interval <= capacity;
	bpf_spin_lock(&l->lock);
	full = now - b->used >= expire || b->full < now ? now : b->full;
	full += interval;
	within = full - now <= capacity;
	if (within)
		b->full = full;
	b->used = now;
	bpf_spin_unlock(&l->lock);
	return within;
}
