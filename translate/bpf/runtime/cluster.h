/* -m cluster (xt_cluster): the connections that this node of a cluster handles. */

#define HASH_BEGIN 0xdeadbeef /* JHASH_INITVAL */

INLINE u32 rotated(u32 word, u32 bits) { return word << bits | word >> (32 - bits); }

/* jhash_1word */
INLINE u32 hash_word(u32 word, u32 seed)
{
	u32 b = HASH_BEGIN + 4 + seed, c = b, a = b + word;

	c = (c ^ b) - rotated(b, 14);
	a = (a ^ c) - rotated(c, 11);
	b = (b ^ a) - rotated(a, 25);
	c = (c ^ b) - rotated(b, 16);
	a = (a ^ c) - rotated(c, 4);
	b = (b ^ a) - rotated(a, 14);
	return (c ^ b) - rotated(b, 24);
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
