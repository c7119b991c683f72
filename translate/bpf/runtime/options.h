/* The options in headers of IPv6 (hbh_mt6). */

/* The options that are left: where the next one is in the frame, and how many bytes. */
struct options {
	u32 at;
	int left;
};

/* The options of a header; none if the packet has no such header, or ends within it. */
INLINE struct options begin_options(struct pkt *p, int present, u32 at, u32 length)
{
	u32 size = (length + 1) << 3;
	struct options o = {at + 2, -1};

	if (present && at + size <= ETH_LENGTH + p->length)
		o.left = size - 2;
	return o;
}

/* Whether the next option has this kind and length, of which 0x100 is any. An option that ends behind the header is the
 * last one. */
INLINE int next_option(struct __sk_buff *skb, struct options *o, u8 kind, u16 length)
{
	u8 head[2] = {};
	u32 size = 1;

	if (o->left < 1 || bpf_skb_load_bytes(skb, o->at, head, 1) || head[0] != kind)
		return 0;
	if (kind) {
		if (o->left < 2 || bpf_skb_load_bytes(skb, o->at + 1, head + 1, 1))
			return 0;
		if (length != 0x100 && head[1] != length)
			return 0;
		size = head[1] + 2;
	}
	o->at += size;
	o->left -= size;
	if (o->left < 0)
		o->left = -1;
	return 1;
}
