/* NAT in programs of its own, for the verifier's sake: its searches and loops are the longest there are. They
 * go on with the program that `next` names.
 */

/* MASQUERADE and REDIRECT name no address: it depends on the device. Returns -1 without one. */
INLINE int resolve_bind(struct pkt *p)
{
	addr address;

	if (p->bind_flags & BIND_MASQUERADE) {
		address = masquerade_address(p);
	} else if (p->bind_flags & BIND_REDIRECT) {
		address = p->iif == 0 ? LOCALHOST : redirect_address(p);
	} else {
		return 0;
	}
	p->bind_low = p->bind_high = address;
	p->bind_flags |= BIND_ADDRESS;
	return address ? 0 : -1;
}

int nfparity_bind(struct __sk_buff *skb)
{
	struct pkt *p = slot_at(skb->cb[0]);
	int manip, done;

	if (!p)
		return TC_ACT_SHOT;
	manip = p->manip == MANIP_SRC ? MANIP_SRC : MANIP_DST;
	if (unbound(p, manip)) {
		if (resolve_bind(p))
			return TC_ACT_SHOT;
		done = bind(p, manip);
		if (done > 0)
			programs.call(skb, PROGRAM_PORT);
		if (done)
			return TC_ACT_SHOT;
	}
	p->sctp_flipped = 0;
	if (translate(skb, p, manip))
		return TC_ACT_SHOT;
	if (p->sctp_flipped)
		programs.call(skb, PROGRAM_SCTP_SUM);
	else
		programs.call(skb, p->next);
	return TC_ACT_SHOT;
}

int nfparity_sctp_verify(struct __sk_buff *skb)
{
	struct pkt *p = slot_at(skb->cb[0]);

	if (!p)
		return TC_ACT_SHOT;
	p->bad_sum = bad_sctp_checksum(skb, p);
	programs.call(skb, PROGRAM_TRACK);
	return TC_ACT_SHOT;
}

int nfparity_sctp_sum(struct __sk_buff *skb)
{
	struct pkt *p = slot_at(skb->cb[0]);

	if (!p)
		return TC_ACT_SHOT;
	set_sctp_checksum(skb, p);
	programs.call(skb, p->next);
	return TC_ACT_SHOT;
}

/* Find a port for what is being bound: a program of its own, because the verifier goes through the search
 * once for every state in which it may begin. */
int nfparity_port(struct __sk_buff *skb)
{
	struct pkt *p = slot_at(skb->cb[0]);
	struct tuple new;
	int manip;

	if (!p)
		return TC_ACT_SHOT;
	manip = p->manip == MANIP_SRC ? MANIP_SRC : MANIP_DST;
	copy_tuple(&new, &p->wanted);
	p->reply_free = unique_port(&new, p, manip);
	if (take(&p->conn, &new, manip))
		return TC_ACT_SHOT;
	programs.call(skb, PROGRAM_BIND);
	return TC_ACT_SHOT;
}

/* On to binding, or past it where no nat table is loaded. */
INLINE int go_on(struct __sk_buff *skb, struct pkt *p)
{
	if (HAS_NAT)
		programs.call(skb, PROGRAM_BIND);
	else
		programs.call(skb, p->next);
	return TC_ACT_SHOT;
}
