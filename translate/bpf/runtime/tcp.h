/* TCP connection states, as nf_conntrack_proto_tcp.c has them, without the sequence windows. */

enum {
	TCP_NONE = 0, TCP_SYN_SENT, TCP_SYN_RECV, TCP_ESTABLISHED, TCP_FIN_WAIT, TCP_CLOSE_WAIT,
	TCP_LAST_ACK, TCP_TIME_WAIT, TCP_CLOSE, TCP_SYN_SENT2, TCP_INVALID, TCP_IGNORE,
};
enum { SEG_SYN = 0, SEG_SYNACK, SEG_FIN, SEG_ACK, SEG_RST, SEG_NONE };
enum { TRACK_OK = 0, TRACK_INVALID, TRACK_REPEAT, TRACK_KILL };

#define FLAG_FIN 1
#define FLAG_SYN 2
#define FLAG_RST 4
#define FLAG_ACK 16
#define FLAG_URG 32

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

INLINE u64 tcp_timeout(u32 state)
{
	u64 seconds = 120; /* SYN_SENT, FIN_WAIT, TIME_WAIT, SYN_SENT2 */

	if (state == TCP_ESTABLISHED)
		seconds = 432000;
	else if (state == TCP_SYN_RECV || state == TCP_CLOSE_WAIT)
		seconds = 60;
	else if (state == TCP_LAST_ACK)
		seconds = 30;
	else if (state == TCP_CLOSE)
		seconds = 10;
	return seconds * 1000000000ULL;
}

/* Take a segment into account (nf_conntrack_tcp_packet). fresh: the entry is not confirmed yet. */
INLINE int tcp_track(struct pkt *p, struct conn *c, u32 dir, int fresh, int loose, u64 now)
{
	u32 index = tcp_index(p->tcp_flags);
	u32 old, new;

	if (fresh) {
		new = tcp_next(0, index, TCP_NONE);
		if (new >= TCP_INVALID || (new != TCP_SYN_SENT && !loose))
			return TRACK_INVALID;
		c->tcp_state = TCP_NONE;
		c->last_index = SEG_NONE;
	}
	old = c->tcp_state;
	new = tcp_next(dir, index, old);
	if (new == TCP_INVALID)
		return TRACK_INVALID;
	if (new == TCP_SYN_SENT && old >= TCP_TIME_WAIT) {
		if (c->closing || (c->last_dir == dir && c->last_index == SEG_RST))
			return TRACK_REPEAT;
		new = TCP_IGNORE;
	}
	if (new == TCP_IGNORE) {
		if (index == SEG_SYNACK && c->last_index == SEG_SYN && dir != c->last_dir &&
		    p->ack == c->last_end) {
			/* It answers a SYN that was let through untracked: the peers start over. */
			old = TCP_SYN_SENT;
			new = TCP_SYN_RECV;
		} else {
			c->last_index = index;
			c->last_dir = dir;
			c->last_end = p->seq + (p->length - p->ihl - p->tcp_doff) +
				      !!(p->tcp_flags & FLAG_SYN) + !!(p->tcp_flags & FLAG_FIN);
			return TRACK_OK;
		}
	}
	if (new == TCP_SYN_SENT2)
		c->simultaneous = 1;
	else if (new == TCP_SYN_RECV && dir == 1 && index == SEG_ACK && c->simultaneous)
		new = TCP_ESTABLISHED;
	else if (new == TCP_CLOSE && index == SEG_RST &&
		 (((c->status & ST_SEEN_REPLY) && c->last_index == SEG_SYN) ||
		  (!(c->status & ST_ASSURED) && c->last_index == SEG_ACK)) &&
		 p->ack == c->last_end)
		new = old; /* an answer to what was let through untracked closes nothing */
	if (new == TCP_FIN_WAIT && old != TCP_FIN_WAIT)
		c->closing |= 1 << (dir & 1);
	c->last_index = index;
	c->last_dir = dir;
	c->last_end = p->seq + (p->length - p->ihl - p->tcp_doff) + !!(p->tcp_flags & FLAG_SYN) +
		      !!(p->tcp_flags & FLAG_FIN);
	c->tcp_state = new;
	c->expires = now + tcp_timeout(new);
	if (!(c->status & ST_SEEN_REPLY)) {
		/* A RST as the only answer: there is no connection, and the next SYN is new. */
		if (index == SEG_RST && !fresh)
			return TRACK_KILL;
	} else if (new == TCP_ESTABLISHED && (old == TCP_SYN_RECV || old == TCP_ESTABLISHED)) {
		c->status |= ST_ASSURED;
	}
	return TRACK_OK;
}
