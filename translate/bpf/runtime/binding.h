/* NAT in separate programs, because its loops are the longest and the verifier limits each program. They
 * continue with the program that `next` names.
 */

/* Find the address for MASQUERADE and REDIRECT, which depends on the device. Returns -1 if there is none. */
INLINE int resolve_bind(struct pkt *p)
{
	addr address;

	if (p->bind_flags & BIND_MASQUERADE) {
		address = masquerade_address(p);
		p->conn.masqueraded = p->oif;
	} else if (p->bind_flags & BIND_REDIRECT) {
		address = p->iif == 0 ? LOCALHOST : redirect_address(p);
	} else {
		return 0;
	}
	p->bind_low = p->bind_high = address;
	p->bind_flags |= BIND_ADDRESS;
	return address ? 0 : -1;
}

INLINE int handle_bind(struct __sk_buff *skb, struct pkt *p)
{
	int manip, done;

	manip = p->manip == MANIP_SRC ? MANIP_SRC : MANIP_DST;
	if (unbound(p, manip)) {
		if (resolve_bind(p))
			return TC_ACT_SHOT;
		done = bind(p, manip);
		if (done > 0) {
			p->searches = 0;
			programs.call(skb, PROGRAM_PORT);
		}
		if (done)
			return failed();
	}
	p->sctp_flipped = 0;
	if (translate(skb, p, manip))
		return TC_ACT_SHOT;
	if (p->sctp_flipped)
		programs.call(skb, PROGRAM_SCTP_SUM);
	else
		programs.call(skb, p->next);
	return failed();
}

INLINE int handle_sctp_verify(struct __sk_buff *skb, struct pkt *p)
{
	int result = bad_sctp_checksum(skb, p);

	if (result == SUM_NOT_YET) {
		programs.call(skb, PROGRAM_SCTP_VERIFY);
		return failed();
	}
	p->bad_sum = result;
	programs.call(skb, PROGRAM_TRACK);
	return failed();
}

INLINE int handle_sctp_sum(struct __sk_buff *skb, struct pkt *p)
{
	set_sctp_checksum(skb, p);
	programs.call(skb, p->next);
	return failed();
}

/* End the closed connection that has the reply tuple of a new one, if a SYN may take its place, as since Linux 6.5
 * (nf_nat_used_tuple_harder). The sequence number must be after that connection's, or its last packets would be valid. */
INLINE int end_closed(struct pkt *p, struct tuple *wanted)
{
	struct tuple reply, key, *orig;
	struct conn *c;

	if (p->proto != PROTO_TCP || p->conn.tcp_state != TCP_SYN_SENT || invert(&reply, wanted))
		return 0;
	orig = replies.lookup(&reply);
	if (!orig)
		return 0;
	copy_tuple(&key, orig);
	c = conns.lookup(&key);
	if (!c || !same_tuple(&c->reply, &reply) || c->tcp_state < TCP_TIME_WAIT || !(c->status & ST_SRC_NAT) ||
	    (s32)(p->conn.client.end - c->client.end) <= 0)
		return 0;
	forget(c);
	return 1;
}

/* Find a port for a binding. It is a separate program, because the verifier follows the search once for
 * every state in which it may begin. */
INLINE int handle_port(struct __sk_buff *skb, struct pkt *p)
{
	struct tuple new;
	int manip, found;

	manip = p->manip == MANIP_SRC ? MANIP_SRC : MANIP_DST;
	copy_tuple(&new, &p->wanted);
	found = unique_port(&new, p, manip);
	manip = unknown(p, manip);
	new.proto = *(volatile tuple_proto *)&p->wanted.proto; /* for the verifier it is unknown again */
	if (found == PORT_NOT_YET) {
		if (p->searches == 1)
			count(COUNT_LONG_SEARCH);
		programs.call(skb, PROGRAM_PORT);
		return failed();
	}
	if (manip == MANIP_SRC && found != PORT_FREE && end_closed(p, &new))
		found = PORT_FREE;
	/* A destination keeps the last port that was tried: the binding of the source can make the tuple unique. */
	if (found == PORT_NONE && manip == MANIP_SRC)
		return lose(COUNT_NO_PORT);
	p->reply_free = found == PORT_FREE;
	if (take(&p->conn, &new, manip))
		return failed();
	programs.call(skb, PROGRAM_BIND);
	return failed();
}

#define MOST_RETRIES 3

/* Confirm a new connection. If a connection on another CPU has taken its port since it was chosen, choose
 * another port and continue with the program `again`, which calls this function again. Returns 0 if the
 * connection is in the table. */
INLINE int not_entered(struct __sk_buff *skb, struct pkt *p, u8 again)
{
	int clash = confirm(p);

	if (clash == CONFIRMED)
		return 0;
	if (HAS_NAT && clash == CLASH_OF_REPLIES && p->retries < MOST_RETRIES &&
	    (p->proto == PROTO_ICMP || is_port_protocol(p->proto)) && !invert(&p->wanted, &p->conn.reply)) {
		p->retries++;
		p->searches = 0;
		p->manip = MANIP_SRC;
		p->next = again;
		count(COUNT_RETRIED);
		programs.call(skb, PROGRAM_PORT);
	}
	count(COUNT_CLASH);
	return -1;
}

/* Continue with the binding program, or with the next one if there is nothing to bind or to rewrite. */
INLINE int go_on(struct __sk_buff *skb, struct pkt *p)
{
	/* NAT verifies the checksum of an ICMP error even if conntrack does not (nf_nat_icmp_reply_translation). */
	if (HAS_NAT && p->related && p->has_icmp && p->bad_sum)
		return TC_ACT_SHOT;
	if (HAS_NAT && (unbound(p, p->manip) || is_translated(p, p->manip)))
		programs.call(skb, PROGRAM_BIND);
	else
		programs.call(skb, p->next);
	return failed();
}
