/* -m cluster (xt_cluster): the connections that this node of a cluster handles. */

/* jhash_1word */
INLINE u32 hash_word(u32 word, u32 seed)
{
	u32 begin = HASH_BEGIN + 4 + seed;

	return hash_end(begin + word, begin, begin);
}

/* Whether a hash of the connection's source selects one of the nodes (xt_cluster_mt). Of an IPv6 address, the kernel
 * hashes the first word. A multicast frame with a packet to a single address counts as a frame to this machine. */
INLINE int cluster_share(struct __sk_buff *skb, struct pkt *p, u32 total, u32 nodes, u32 seed, int negated)
{
	struct wire source = to_wire(p->conn.orig.src);
	u64 hash = hash_word(source.word[0], seed);

	if (p->type == TO_GROUP && !(FAMILY == 2 ? is_multicast(p->daddr) : is_group(p->daddr))) {
		p->type = FOR_THIS_HOST;
		p->regarded = 1;
		bpf_skb_change_type(skb, FOR_THIS_HOST);
	}
	return p->has_ct && (nodes >> (hash * total >> 32) & 1) != negated;
}
