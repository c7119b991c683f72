/* The options of a segment for -m tcp --tcp-option, -m tcpmss, -j TCPMSS and -j TCPOPTSTRIP. */

#define OPTION_FILLER 1
#define OPTION_MSS 2
#define MSS_LENGTH 4
#define CHANGED 64 /* where the options are after a change, in the scratch space */

/* Read `length` bytes of options into the scratch space. Returns 0, or -1 for a segment that ends before. */
INLINE int load_options(struct __sk_buff *skb, struct pkt *p, struct bytes *b, u32 length)
{
	for (u32 i = 0; i < 10; i++) {
		asm volatile("" : "+r"(i));
		if (i * 4 >= length)
			break;
		if (bpf_skb_load_bytes(skb, p->l4 + 20 + i * 4, b->data + i * 4, 4))
			return -1;
	}
	return 0;
}

/* The length of an option (optlen of xt_TCPMSS.c). */
INLINE u32 option_length(u8 *option) { return option[0] <= OPTION_FILLER || !option[1] ? 1 : option[1]; }

/* Store which kinds of options a segment has (tcp_find_option), and where its first MSS is (tcpmss_mt). */
INLINE void parse_options(struct __sk_buff *skb, struct pkt *p)
{
	u32 zero = 0, length, at = 0;
	struct bytes *b = scratch.lookup(&zero);

	p->has_options = p->has_tcp && p->tcp_doff >= 20 && p->segment >= p->tcp_doff;
	p->mss = p->mss_at = 0;
	p->options[0] = p->options[1] = p->options[2] = p->options[3] = 0;
	if (!b || !p->has_options)
		return;
	length = p->tcp_doff - 20;
	if (load_options(skb, p, b, length))
		return;
	length = unknown(p, length);
	for (u32 i = 0; i < 40; i++) {
		u8 *option;
		u32 kind;

		asm volatile("" : "+r"(i));
		at = unknown(p, at);
		if (at >= length)
			break;
		option = b->data + (at & 63);
		kind = option[0];
		p->options[kind >> 6] |= 1ULL << (kind & 63);
		if (kind == OPTION_MSS && option[1] == MSS_LENGTH && at + MSS_LENGTH <= length && !p->mss_at) {
			p->mss = option[2] << 8 | option[3];
			p->mss_at = p->l4 + 20 + at;
		}
		at += option_length(option);
	}
}

/* Lower the MSS that a segment announces (tcpmss_mangle_packet). Returns 1 for a segment that it drops. */
INLINE int limit_mss(struct __sk_buff *skb, struct pkt *p, u16 most)
{
	u16 old, new;

	if (p->fragment == LATER_FRAGMENT)
		return 0;
	if (!p->has_options)
		return 1;
	if (!p->mss_at || p->mss <= most)
		return 0;
	old = swap16(p->mss);
	new = swap16(most);
	bpf_l4_csum_replace(skb, p->l4 + 16, old, new, 2);
	bpf_skb_store_bytes(skb, p->mss_at + 2, &new, 2, 0);
	p->mss = most;
	return 0;
}

/* Overwrite the options of the kinds that have a bit in these words with fillers (tcpoptstrip_mangle_packet). Returns 1
 * for a segment that it drops. */
INLINE int strip_options(struct __sk_buff *skb, struct pkt *p, u64 first, u64 second, u64 third, u64 fourth)
{
	u32 zero = 0, length, left = 0, strip = 0;
	s64 diff = 0;
	struct bytes *b = scratch.lookup(&zero);

	if (p->fragment == LATER_FRAGMENT)
		return 0;
	if (!b || !p->has_options)
		return 1;
	p->stripped[0] = first;
	p->stripped[1] = second;
	p->stripped[2] = third;
	p->stripped[3] = fourth;
	length = p->tcp_doff - 20;
	if (load_options(skb, p, b, length))
		return 1;
	length = unknown(p, length);
	for (u32 i = 0; i < 40; i++) {
		u8 *option = b->data + i;

		asm volatile("" : "+r"(i));
		if (i >= length)
			break;
		left = unknown(p, left);
		strip = unknown(p, strip);
		if (!left) {
			left = option_length(option);
			strip = p->stripped[option[0] >> 6] >> (option[0] & 63) & 1;
			if (i + 1 == length || i + left > length) {
				strip = 0; /* the rest stays */
				left = 64;
			}
		}
		left--;
		option[CHANGED] = strip ? OPTION_FILLER : option[0];
	}
	for (u32 i = 0; i < 10; i++) {
		u8 *old = b->data + i * 4;

		asm volatile("" : "+r"(i));
		if (i * 4 >= length)
			break;
		diff = bpf_csum_diff((__be32 *)old, 4, (__be32 *)(old + CHANGED), 4, diff);
		bpf_skb_store_bytes(skb, p->l4 + 20 + i * 4, old + CHANGED, 4, 0);
	}
	bpf_l4_csum_replace(skb, p->l4 + 16, 0, diff, 0);
	parse_options(skb, p);
	return 0;
}
