/* Words of a packet at an offset from its IP header (xt_u32). */

#define NO_WORD (~0ULL)

/* The word at `number` from the base, or NO_WORD if it is not whole in the packet (u32_match_it). */
INLINE u64 word_at(struct __sk_buff *skb, struct pkt *p, u64 base, u32 number)
{
	u64 at = base + number;
	u32 word = 0;

	if (at + 4 > p->length || bpf_skb_load_bytes(skb, ETH_LENGTH + at, &word, 4))
		return NO_WORD;
	return (u32)__builtin_bswap32(word);
}
