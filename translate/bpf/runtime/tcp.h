/* TCP segments of connections: nf_conntrack_tcp_packet of nf_conntrack_proto_tcp.c. */

/* Accept a segment that may be valid while conntrack is out of sync. Returns 1 if it is the answer to an
 * accepted SYN, so that both ends are in SYN_RECV. */
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
	if (index == SEG_SYN && dir == 0) {
		c->last_scale = p->option_scale;
		c->last_flags = p->option_flags;
		c->challenge = old == TCP_LAST_ACK;
		c->simultaneous = 0; /* in the kernel one of last_flags */
	}
	if (old == TCP_SYN_SENT && index == SEG_ACK && dir == 1)
		c->last_ack = p->ack;
	return 0;
}

/* Examine a RST. Returns 0 to check the window, 1 to skip that check, 2 if the RST is invalid, and 3 to check
 * the window but keep the state. */
INLINE int tcp_reset(struct pkt *p, struct conn *c, u32 dir, u32 old, struct settings *s)
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
		if (before(p->seq, receiver->maxack) && !s->tcp_ignore_invalid_rst)
			return 2;
		if (!established || p->seq == receiver->maxack)
			return 0;
		if (c->last_index == SEG_ACK && c->last_dir == dir && p->seq == c->last_end)
			return 0;
		challenged = 3; /* not the expected sequence number: the peer may send a challenge ACK */
	}
	/* Older kernels let a RST of the side that sent the SYN pass here, too. */
	if ((((c->status & ST_SEEN_REPLY) && c->last_index == SEG_SYN && c->last_dir != dir) ||
	     (!(c->status & ST_ASSURED) && c->last_index == SEG_ACK)) &&
	    p->ack == c->last_end)
		return 1;
	if (old == TCP_SYN_SENT && c->last_index == SEG_ACK && c->last_dir == 1 && p->seq == c->last_ack)
		return 1;
	return challenged;
}

/* Whether a SYN begins a closed connection again, whose old entry must then be removed. */
INLINE int tcp_reopens(struct pkt *p, struct conn *c, u32 dir)
{
	return c->tcp_state >= TCP_TIME_WAIT &&
	       tcp_next(dir, tcp_index(p->tcp_flags), c->tcp_state) == TCP_SYN_SENT &&
	       (((c->client.flags | c->server.flags) & SIDE_CLOSING) ||
		(c->last_dir == dir && c->last_index == SEG_RST));
}

/* A FIN or RST is outside the window. If it answers another, the connection may have ended without conntrack,
 * so its timeout shrinks (nf_tcp_handle_invalid, Linux 6.1). */
INLINE void tcp_distrust(struct conn *c, u32 dir, u32 index, struct settings *s, u64 now)
{
	u64 soonest = now + s->tcp_unacknowledged * SECOND;

	if (!(c->status & ST_ASSURED) || (index != SEG_RST && index != SEG_FIN))
		return;
	if (c->last_dir != dir && (c->last_index == SEG_FIN || c->last_index == SEG_RST)) {
		if (c->expires >= now + 120 * SECOND && c->expires > soonest)
			c->expires = soonest;
	} else {
		c->last_index = index;
		c->last_dir = dir;
	}
}

/* Track a segment (nf_conntrack_tcp_packet). fresh: the entry is not confirmed yet. */
INLINE int tcp_track(struct pkt *p, struct conn *c, u32 dir, int fresh, struct settings *s, u64 now)
{
	u32 index = unknown(p, tcp_index(p->tcp_flags));
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
		new = TCP_IGNORE; /* tcp_reopens() returned 0 */
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
		done = tcp_reset(p, c, dir, old, s);
		if (done == 2)
			return TRACK_INVALID;
		if (done == 3)
			new = old;
		check = done != 1;
	}
	check = unknown(p, check);
	new = unknown(p, new);
	old = unknown(p, old);
	if (check) {
		done = tcp_in_window(p, c, dir, index, s->tcp_liberal);
		done = unknown(p, done);
		if (done == TRACK_INVALID)
			tcp_distrust(c, dir, index, s, now);
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
