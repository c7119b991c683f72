/* Windows of TCP connections: options and sequence numbers, tcp_in_window of nf_conntrack_proto_tcp.c. */

/* Comparisons of numbers of 32 bits, with the result 0 or 1. A branch would be another path for the verifier in each round
 * of a loop, and clang makes one if it recognises a comparison. */
INLINE u64 equal(u64 a, u64 b)
{
	u64 different = a ^ b;

	asm volatile("" : "+r"(different));
	return (different - 1) >> 63;
}

INLINE u64 less(u64 a, u64 b)
{
	asm volatile("" : "+r"(a));
	return (a - b) >> 63;
}

INLINE u64 either(u64 bit, u64 value, u64 otherwise)
{
	asm volatile("" : "+r"(bit));
	return otherwise + (value - otherwise) * bit;
}

/* Read the options: window scale and "SACK permitted" (tcp_options), and the highest sequence number that is
 * acknowledged selectively (tcp_sack). */
INLINE void tcp_read_options(struct __sk_buff *skb, struct pkt *p)
{
	u32 zero = 0, length = p->tcp_doff - 20, highest = p->ack;
	u64 at = 0, end, scale = 0, flags = 0, first = 1;
	struct bytes *b = scratch.lookup(&zero);

	p->option_scale = p->option_flags = 0;
	p->sack = p->ack;
	if (!b || p->tcp_doff <= 20)
		return;
	for (u32 i = 0; i < 10; i++) {
		asm volatile("" : "+r"(i));
		if (i * 4 >= length)
			break;
		if (bpf_skb_load_bytes(skb, p->l4 + 20 + i * 4, b->data + i * 4, 4))
			return;
	}
	/* Nearly all segments have a timestamp only, after two bytes that fill. */
	if (length == 12 && read32(b->data) == 0x0101080a)
		return;
	end = unknown(p, length);
	/* A round reads an option, which has two bytes or more, or skips two bytes that fill. */
	for (u32 i = 0; i < 20; i++) {
		u64 kind, size, filler, wrong, is_scale, is_sack;
		u8 *option;

		asm volatile("" : "+r"(i));
		at = unknown(p, at) & 63; /* one range for all rounds, so that the verifier recognises them as equal */
		at += equal(b->data[at], 1);
		if (at >= end)
			break;
		option = b->data + at;
		kind = option[0];
		filler = equal(kind, 1);
		size = either(filler, 1, option[1]);
		wrong = equal(kind, 0) | less(size, 2 - filler) | less(end, at + size);
		if (wrong)
			break;
		is_scale = equal(kind, 3) & equal(size, 3);
		is_sack = first & equal(kind, 5) & less(9, size) & equal((size - 2) & 7, 0); /* the first only */
		first ^= is_sack;
		flags |= (equal(kind, 4) & equal(size, 2)) * SIDE_SACK | is_scale * SIDE_SCALES;
		scale = either(is_scale, either(less(14, option[2]), 14, option[2]), scale);
#pragma unroll
		for (u32 k = 0; k < 4; k++) {
			u32 right = read32(option + 6 + 8 * k);
			u32 above = (highest - right) >> 31; /* after(right, highest) */

			highest = either(is_sack & less(9 + 8 * k, size) & above, right, highest);
		}
		at += size;
	}
	p->option_scale = scale;
	p->option_flags = flags;
	p->sack = highest;
}

INLINE u32 segment_end(struct pkt *p)
{
	return p->seq + (p->segment - p->tcp_doff) + !!(p->tcp_flags & FLAG_SYN) +
	       !!(p->tcp_flags & FLAG_FIN);
}

/* tcp_init_sender */
INLINE void tcp_begin(struct pkt *p, struct side *sender, struct side *receiver, u32 dir)
{
	sender->end = sender->maxend = segment_end(p);
	sender->maxwin = p->window ? p->window : 1;
	if (p->tcp_doff > 20) { /* a header without options changes nothing (tcp_options) */
		sender->scale = p->option_scale;
		sender->flags = (sender->flags & SIDE_LIBERAL) | p->option_flags;
	}
	if (dir == 1 && !(sender->flags & receiver->flags & SIDE_SCALES))
		sender->scale = receiver->scale = 0;
}

/* Check that a segment is in the windows (tcp_in_window). Returns TRACK_OK, TRACK_IGNORE or TRACK_INVALID. */
INLINE int tcp_in_window(struct pkt *p, struct conn *c, u32 dir, u32 index, int liberal)
{
	struct side *sender = dir ? &c->server : &c->client;
	struct side *receiver = dir ? &c->client : &c->server;
	u32 seq = p->seq, ack = p->ack, sack = p->ack, window = p->window, end = segment_end(p);
	u32 reach, swin;
	u8 flags = p->tcp_flags;
	int in_window;

	if (receiver->flags & SIDE_SACK)
		sack = p->sack;
	if (sender->maxwin == 0) {
		if (flags & FLAG_SYN) {
			tcp_begin(p, sender, receiver, dir);
			if (!(flags & FLAG_ACK))
				return TRACK_OK;
		} else {
			/* In the middle of a connection the values of the segment are accepted. */
			swin = window << (sender->scale & 15);
			sender->end = end;
			sender->maxwin = swin ? swin : 1;
			sender->maxend = end + sender->maxwin;
			if (receiver->maxwin == 0)
				receiver->end = receiver->maxend = sack;
			else if (sack == receiver->end + 1)
				receiver->end++;
		}
	} else if ((flags & FLAG_SYN) && after(end, sender->end) &&
		   (c->tcp_state == TCP_SYN_SENT || c->tcp_state == TCP_SYN_RECV)) {
		tcp_begin(p, sender, receiver, dir);
		if (dir == 1 && !(flags & FLAG_ACK))
			return TRACK_OK;
	}
	if (!(flags & FLAG_ACK) || ((flags & FLAG_RST) && ack == 0))
		ack = sack = receiver->end;
	if ((flags & FLAG_RST) && seq == 0 && c->tcp_state == TCP_SYN_SENT)
		seq = end = sender->end;

	ack = unknown(p, ack);
	sack = unknown(p, sack);
	seq = unknown(p, seq);
	end = unknown(p, end);
	if (sender->flags & SIDE_LIBERAL)
		liberal = 1;
	liberal = unknown(p, liberal);
	in_window = !receiver->maxwin || after(end, sender->end - receiver->maxwin - 1);
	reach = receiver->end - (sender->maxwin > MAX_ACK_WINDOW ? sender->maxwin : MAX_ACK_WINDOW) - 1;
	if (!before(seq, sender->maxend + 1)) {
		u32 overshot = end - sender->maxend + 1;
		if (in_window && receiver->maxwin && after(sack, reach) && overshot <= receiver->maxwin &&
		    before(sack, receiver->end + 1)) {
			sender->end = end;
			sender->flags |= SIDE_UNACKED;
			return liberal ? TRACK_OK : TRACK_IGNORE;
		}
		return liberal ? TRACK_OK : TRACK_INVALID;
	}
	if (!before(sack, receiver->end + 1))
		return liberal ? TRACK_OK : TRACK_INVALID;
	if (!in_window || !after(sack, reach))
		return liberal ? TRACK_OK : TRACK_IGNORE;

	if (!(flags & FLAG_SYN))
		window <<= sender->scale & 15;
	swin = window + (sack - ack);
	if (sender->maxwin < swin)
		sender->maxwin = swin;
	if (after(end, sender->end)) {
		sender->end = end;
		sender->flags |= SIDE_UNACKED;
	}
	if ((flags & FLAG_ACK) && (!(sender->flags & SIDE_ACKED) || after(ack, sender->maxack))) {
		sender->maxack = ack;
		sender->flags |= SIDE_ACKED;
	}
	if (receiver->maxwin && after(end, sender->maxend))
		receiver->maxwin += end - sender->maxend;
	if (after(sack + window, receiver->maxend - 1)) {
		receiver->maxend = sack + window;
		if (window == 0)
			receiver->maxend++;
	}
	if (ack == receiver->end)
		receiver->flags &= ~SIDE_UNACKED;
	if (index == SEG_ACK) {
		if (c->last_dir == dir && c->last_seq == seq && c->last_ack == ack && c->last_end == end &&
		    c->last_win == p->window) {
			c->retransmissions++;
		} else {
			c->last_dir = dir;
			c->last_seq = seq;
			c->last_ack = ack;
			c->last_end = end;
			c->last_win = p->window;
			c->retransmissions = 0;
		}
	}
	return TRACK_OK;
}
