/* States of TCP connections: the transitions and timeouts of nf_conntrack_proto_tcp.c (Linux 6.18). */

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

/* tcp_valid_flags: PSH is always allowed, other flags only in these combinations. */
INLINE int tcp_flags_valid(u8 flags)
{
	flags &= FLAG_FIN | FLAG_SYN | FLAG_RST | FLAG_ACK | FLAG_URG;
	return flags == FLAG_SYN || flags == (FLAG_SYN | FLAG_URG) || flags == (FLAG_SYN | FLAG_ACK) ||
	       flags == FLAG_RST || flags == (FLAG_RST | FLAG_ACK) || flags == (FLAG_FIN | FLAG_ACK) ||
	       flags == (FLAG_FIN | FLAG_ACK | FLAG_URG) || flags == FLAG_ACK || flags == (FLAG_ACK | FLAG_URG);
}

/* The state after a segment (tcp_conntracks). A row has one digit per old state, with TCP_NONE in the lowest.
 * The rows are constants in the code, because BPF programs of this kind have no data section. */
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
	/* The mask bounds the register that is used as index; the verifier of Linux 6.1 learns nothing from the
	 * comparison of a copy. Other numbers do not occur, and would still be inside the structure. */
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
	/* The connection was picked up in the middle, and no reply has been seen yet. */
	if (!(c->status & ST_SEEN_REPLY) && state == TCP_ESTABLISHED && seconds > s->tcp_unacknowledged)
		seconds = s->tcp_unacknowledged;
	return seconds * SECOND;
}
