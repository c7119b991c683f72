/* TCP connections: the state machine and the windows of nf_conntrack_proto_tcp.c (Linux 6.18). */

enum {
	TCP_NONE = 0, TCP_SYN_SENT, TCP_SYN_RECV, TCP_ESTABLISHED, TCP_FIN_WAIT, TCP_CLOSE_WAIT,
	TCP_LAST_ACK, TCP_TIME_WAIT, TCP_CLOSE, TCP_SYN_SENT2, TCP_INVALID, TCP_IGNORE,
};
enum { SEG_SYN = 0, SEG_SYNACK, SEG_FIN, SEG_ACK, SEG_RST, SEG_NONE };
enum { TRACK_OK = 0, TRACK_IGNORE, TRACK_INVALID, TRACK_KILL };

#define FLAG_FIN 1
#define FLAG_SYN 2
#define FLAG_RST 4
#define FLAG_ACK 16
#define FLAG_URG 32

/* struct side */
#define SIDE_SCALES 1
#define SIDE_SACK 2
#define SIDE_CLOSING 4
#define SIDE_LIBERAL 8
#define SIDE_UNACKED 16
#define SIDE_ACKED 32 /* maxack is set */

#define MAX_ACK_WINDOW 66000

INLINE int before(u32 a, u32 b) { return (s32)(a - b) < 0; }
INLINE int after(u32 a, u32 b) { return before(b, a); }

INLINE u32 tcp_index(u8 flags)
{
	if (flags & FLAG_RST)
		return SEG_RST;
	if (flags & FLAG_SYN)
		return flags & FLAG_ACK ? SEG_SYNACK : SEG_SYN;
	if (flags & FLAG_FIN)
		return SEG_FIN;
	return flags & FLAG_ACK ? SEG_ACK : SEG_NONE;
}

/* tcp_valid_flags: PSH may stand with anything, everything else only in these combinations. */
INLINE int tcp_flags_valid(u8 flags)
{
	flags &= FLAG_FIN | FLAG_SYN | FLAG_RST | FLAG_ACK | FLAG_URG;
	return flags == FLAG_SYN || flags == (FLAG_SYN | FLAG_URG) || flags == (FLAG_SYN | FLAG_ACK) ||
	       flags == FLAG_RST || flags == (FLAG_RST | FLAG_ACK) || flags == (FLAG_FIN | FLAG_ACK) ||
	       flags == (FLAG_FIN | FLAG_ACK | FLAG_URG) || flags == FLAG_ACK || flags == (FLAG_ACK | FLAG_URG);
}

/* The state after a segment: one digit per old state, TCP_NONE in the lowest (tcp_conntracks).
 * Tables are constants in the code because BPF programs of this kind have no data section. */
INLINE u32 tcp_next(u32 dir, u32 index, u32 state)
{
	u64 row = 0xaaaaaaaaaaULL;

	if (index == SEG_FIN)
		row = 0xa8766644aaULL;
	else if (index == SEG_RST)
		row = 0x888888888aULL;
	else if (dir == 0) {
		if (index == SEG_SYN)
			row = 0x911bbbbb11ULL;
		else if (index == SEG_SYNACK)
			row = 0x2aaaaaa2aaULL;
		else if (index == SEG_ACK)
			row = 0xa8775533a3ULL;
	} else {
		if (index == SEG_SYN)
			row = 0x9a1aaaaa9aULL;
		else if (index == SEG_SYNACK)
			row = 0x2bbbbbbb2aULL;
		else if (index == SEG_ACK)
			row = 0xb8775532baULL;
	}
	return (row >> ((state & 15) * 4)) & 15;
}

INLINE u64 tcp_timeout(struct conn *c, struct settings *s, u32 state, int rst)
{
	u32 seconds;

	if (state > 9)
		state = 0;
	/* A bound in the very register that is used: the verifier of Linux 6.1 learns nothing from a comparison of
	 * a copy. Other numbers do not occur, and would be inside of the structure. */
	asm volatile("" : "+r"(state));
	seconds = s->tcp_timeout[state & 15];

	if (c->retransmissions >= s->tcp_max_retrans && seconds > s->tcp_retransmitted)
		seconds = s->tcp_retransmitted;
	else if (rst)
		seconds = s->tcp_timeout[TCP_CLOSE];
	else if (((c->client.flags | c->server.flags) & SIDE_UNACKED) && seconds > s->tcp_unacknowledged)
		seconds = s->tcp_unacknowledged;
	else if (c->last_win == 0 && seconds > s->tcp_retransmitted)
		seconds = s->tcp_retransmitted;
	/* Picked up in the middle, and nobody has answered yet. */
	if (!(c->status & ST_SEEN_REPLY) && state == TCP_ESTABLISHED && seconds > s->tcp_unacknowledged)
		seconds = s->tcp_unacknowledged;
	return seconds * 1000000000ULL;
}

/* Read the options once: window scale and "SACK permitted" (tcp_options), and the highest number that
 * is acknowledged selectively (tcp_sack). */
INLINE void tcp_read_options(struct __sk_buff *skb, struct pkt *p)
{
	u32 zero = 0, at = 0, length = p->tcp_doff - 20;
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
	for (u32 i = 0; i < 40; i++) {
		u8 kind, size;
		/* One range for all rounds lets the verifier see that they are alike. */
		asm volatile("" : "+r"(i));
		at &= 63;
		if (at >= length)
			break;
		kind = b->data[at];
		if (kind == 0)
			break;
		if (kind == 1) {
			at++;
			continue;
		}
		size = b->data[at + 1];
		if (size < 2 || at + size > length)
			break;
		if (kind == 4 && size == 2)
			p->option_flags |= SIDE_SACK;
		if (kind == 3 && size == 3) {
			u8 scale = b->data[at + 2];
			p->option_scale = scale > 14 ? 14 : scale;
			p->option_flags |= SIDE_SCALES;
		}
		if (kind == 5) {
			u8 *edge = b->data + at;
			u32 right;
#define BLOCK(k)                                                                                        \
	if (size >= 10 + 8 * (k)) {                                                                     \
		right = (u32)edge[6 + 8 * (k)] << 24 | edge[7 + 8 * (k)] << 16 |                        \
			edge[8 + 8 * (k)] << 8 | edge[9 + 8 * (k)];                                     \
		if (after(right, p->sack))                                                              \
			p->sack = right;                                                                \
	}
			BLOCK(0)
			BLOCK(1)
			BLOCK(2)
			BLOCK(3)
		}
		at += size;
	}
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
	sender->scale = p->option_scale;
	sender->flags = (sender->flags & SIDE_LIBERAL) | p->option_flags;
	if (dir == 1 && !(sender->flags & receiver->flags & SIDE_SCALES))
		sender->scale = receiver->scale = 0;
}

/* Whether a segment lies in the windows (tcp_in_window). Returns TRACK_OK, _IGNORE or _INVALID. */
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
			/* In the middle of a connection: take what the segment says. */
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

	if (sender->flags & SIDE_LIBERAL)
		liberal = 1;
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

/* What is let pass while our view may be out of step. Returns 1 when the segment is the answer to one
 * that was let pass before, so that both ends are in SYN_RECV. */
INLINE int tcp_ignore(struct pkt *p, struct conn *c, u32 dir, u32 index, u32 old)
{
	if (index == SEG_SYNACK && c->last_index == SEG_SYN && c->last_dir != dir && p->ack == c->last_end) {
		struct side *other = dir ? &c->client : &c->server;
		struct side *own = dir ? &c->server : &c->client;
		other->end = other->maxend = c->last_end;
		other->maxwin = c->last_win ? c->last_win : 1;
		other->scale = c->last_scale;
		other->flags = c->last_flags;
		own->end = own->maxend = own->maxwin = own->maxack = own->scale = 0;
		own->flags &= SIDE_LIBERAL;
		c->challenge = 0;
		return 1;
	}
	c->last_index = index;
	c->last_dir = dir;
	c->last_seq = p->seq;
	c->last_end = segment_end(p);
	c->last_win = p->window;
	if (index == SEG_SYN && dir == 0)
		c->challenge = old == TCP_LAST_ACK;
	if (old == TCP_SYN_SENT && index == SEG_ACK && dir == 1)
		c->last_ack = p->ack;
	return 0;
}

/* A RST: 0 go on and check the window, 1 go on without, 2 invalid, 3 as 0 but it closes nothing. */
INLINE int tcp_reset(struct pkt *p, struct conn *c, u32 dir, u32 old)
{
	struct side *receiver = dir ? &c->client : &c->server;
	int established = old == TCP_ESTABLISHED && (c->status & ST_ASSURED);
	int challenged = 0;

	if (old == TCP_FIN_WAIT || old == TCP_LAST_ACK || old == TCP_TIME_WAIT || old == TCP_CLOSE ||
	    old == TCP_CLOSE_WAIT)
		return 1;
	if ((receiver->flags & SIDE_ACKED) && c->last_index != SEG_SYN) {
		if (p->seq == 0 && !established)
			return 0;
		if (before(p->seq, receiver->maxack))
			return 2;
		if (!established || p->seq == receiver->maxack)
			return 0;
		if (c->last_index == SEG_ACK && c->last_dir == dir && p->seq == c->last_end)
			return 0;
		challenged = 3; /* not the exact number: the peer may send a challenge ACK */
	}
	if ((((c->status & ST_SEEN_REPLY) && c->last_index == SEG_SYN) ||
	     (!(c->status & ST_ASSURED) && c->last_index == SEG_ACK)) &&
	    p->ack == c->last_end)
		return 1;
	if (old == TCP_SYN_SENT && c->last_index == SEG_ACK && c->last_dir == 1 && p->seq == c->last_ack)
		return 1;
	return challenged;
}

/* Whether a SYN starts a closed connection anew, whose entry is then to be forgotten. */
INLINE int tcp_reopens(struct pkt *p, struct conn *c, u32 dir)
{
	return c->tcp_state >= TCP_TIME_WAIT &&
	       tcp_next(dir, tcp_index(p->tcp_flags), c->tcp_state) == TCP_SYN_SENT &&
	       (((c->client.flags | c->server.flags) & SIDE_CLOSING) ||
		(c->last_dir == dir && c->last_index == SEG_RST));
}

/* Take a segment into account (nf_conntrack_tcp_packet). fresh: the entry is not confirmed yet. */
INLINE int tcp_track(struct pkt *p, struct conn *c, u32 dir, int fresh, struct settings *s, u64 now)
{
	u32 index = tcp_index(p->tcp_flags);
	u32 old, new;
	int check = 1, done;

	if (fresh) {
		new = tcp_next(0, index, TCP_NONE);
		if (new >= TCP_INVALID || (new != TCP_SYN_SENT && !s->tcp_loose))
			return TRACK_INVALID;
		c->client.end = segment_end(p);
		c->client.maxwin = p->window ? p->window : 1;
		c->client.maxend = c->client.end;
		if (new == TCP_SYN_SENT) {
			c->client.scale = p->option_scale;
			c->client.flags = p->option_flags;
		} else {
			c->client.maxend += c->client.maxwin;
			c->client.flags = c->server.flags = SIDE_SACK | SIDE_LIBERAL;
		}
		c->tcp_state = TCP_NONE;
		c->last_index = SEG_NONE;
	}
	old = c->tcp_state;
	new = tcp_next(dir, index, old);
	if (new == TCP_INVALID)
		return TRACK_INVALID;
	if (new == TCP_SYN_SENT && old >= TCP_TIME_WAIT)
		new = TCP_IGNORE; /* tcp_reopens has said no */
	if (new == TCP_IGNORE) {
		if (!tcp_ignore(p, c, dir, index, old))
			return TRACK_IGNORE;
		old = TCP_SYN_SENT;
		new = TCP_SYN_RECV;
	} else if (new == TCP_TIME_WAIT) {
		if (old == TCP_LAST_ACK && index == SEG_ACK && c->last_dir != dir && c->last_index == SEG_SYN &&
		    c->challenge) {
			c->challenge = 0;
			return TRACK_IGNORE;
		}
	} else if (new == TCP_SYN_SENT2) {
		c->simultaneous = 1;
	} else if (new == TCP_SYN_RECV) {
		if (dir == 1 && index == SEG_ACK && c->simultaneous)
			new = TCP_ESTABLISHED;
	} else if (new == TCP_CLOSE && index == SEG_RST) {
		done = tcp_reset(p, c, dir, old);
		if (done == 2)
			return TRACK_INVALID;
		if (done == 3)
			new = old;
		check = done != 1;
	}
	if (check) {
		done = tcp_in_window(p, c, dir, index, s->tcp_liberal);
		if (done != TRACK_OK)
			return done;
	}
	c->last_index = index;
	c->last_dir = dir;
	c->tcp_state = new;
	if (old != new && new == TCP_FIN_WAIT) {
		struct side *sender = dir ? &c->server : &c->client;
		sender->flags |= SIDE_CLOSING;
	}
	if (!(c->status & ST_SEEN_REPLY)) {
		/* A RST before any answer: there is no connection, and the next SYN is new. */
		if (p->tcp_flags & FLAG_RST)
			return TRACK_KILL;
		if (index == SEG_SYN && old == TCP_SYN_SENT)
			return TRACK_IGNORE; /* a SYN sent again does not renew the timeout */
	} else if ((old == TCP_SYN_RECV || old == TCP_ESTABLISHED) && new == TCP_ESTABLISHED) {
		c->status |= ST_ASSURED;
	}
	c->expires = now + tcp_timeout(c, s, new, p->tcp_flags & FLAG_RST);
	return TRACK_OK;
}
