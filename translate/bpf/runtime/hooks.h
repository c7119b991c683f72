/* The way through the stack: which chains run where, and what carries a packet from one program to
 * the next.
 *
 * The kernel goes on routing, so that TTL, "no route", ICMP redirects and martian checks are its own:
 *
 *   ingress of a device   PREROUTING, and INPUT when the destination is local
 *   egress of a device    FORWARD and POSTROUTING, for a packet that came in somewhere
 *                         OUTPUT and POSTROUTING, for a packet made here
 *
 * ip_forward decrements the TTL before FORWARD, and asks for the neighbour after POSTROUTING: what a
 * tc program sees at egress is what FORWARD saw, on the device that was chosen. A packet made here
 * whose destination has changed is routed again and redirected, onto another device or into lo.
 *
 * Between ingress and egress, and through lo, tc_index is the number of the packet's slot.
 */

#define SLOTS 4096

INLINE struct pkt *slot_at(u32 number)
{
	number &= SLOTS - 1;
	return slots.lookup(&number);
}

INLINE struct pkt *claim_slot(struct __sk_buff *skb)
{
	u32 zero = 0, number;
	u32 *counter = slot_counter.lookup(&zero);
	struct pkt *p;

	if (!counter)
		return 0;
	*counter = *counter % 255 + 1; /* 0 means no slot */
	number = (bpf_get_smp_processor_id() & 15) << 8 | *counter;
	p = slot_at(number);
	if (!p)
		return 0;
	p->slot = number;
	p->stage = AT_NOTHING;
	p->has_ct = p->fresh = p->related = p->dir = p->looped = p->answer = 0;
	p->ct_state = CT_INVALID;
	skb->cb[0] = number;
	return p;
}

INLINE void set_in(struct pkt *p, u32 index)
{
	struct device *d = index ? devices.lookup(&index) : 0;

	p->iif = index;
	p->in[0] = d ? d->name[0] : 0;
	p->in[1] = d ? d->name[1] : 0;
}

INLINE void set_out(struct pkt *p, u32 index)
{
	struct device *d = index ? devices.lookup(&index) : 0;

	p->oif = index;
	p->out[0] = d ? d->name[0] : 0;
	p->out[1] = d ? d->name[1] : 0;
}

/* Let the stack have the packet; stage says who takes it up again. */
INLINE int pass(struct __sk_buff *skb, struct pkt *p, u8 stage)
{
	skb->mark = p->mark;
	p->stage = stage;
	p->left_saddr = p->saddr;
	p->left_daddr = p->daddr;
	p->left_id = p->ip_id;
	skb->tc_classid = stage == AT_NOTHING ? 0 : p->slot;
	return TC_ACT_OK;
}

/* Take up the packet that tc_index names. Returns 0 when it is not the one that left. */
INLINE struct pkt *resume(struct __sk_buff *skb)
{
	struct pkt *p = slot_at(skb->tc_index);

	if (!p || parse(skb, p))
		return 0;
	if (p->saddr != p->left_saddr || p->daddr != p->left_daddr || p->ip_id != p->left_id)
		return 0;
	skb->cb[0] = p->slot;
	p->mark = skb->mark;
	return p;
}

/* Into lo's receiving side: the route that the packet has attached leads elsewhere, and only this way
 * it is forgotten. lo's hardware address is zero. */
INLINE int into_loopback(struct __sk_buff *skb, struct pkt *p, u8 stage)
{
	u8 zero[12] = {};

	skb->tc_index = p->slot;
	pass(skb, p, stage);
	bpf_skb_store_bytes(skb, 0, zero, sizeof(zero), 0);
	return bpf_redirect(LOOPBACK_INDEX, BPF_F_INGRESS);
}

/* BCC does not rewrite map calls inside macros. */
INLINE int answer_reject(struct __sk_buff *skb)
{
	programs.call(skb, PROGRAM_REJECT);
	return TC_ACT_SHOT;
}

#define RUN(chain)                                                \
	do {                                                      \
		int verdict_ = chain(skb, p);                     \
		if (verdict_ == DROP)                             \
			return TC_ACT_SHOT;                       \
		if (verdict_ == REJECT)                           \
			return answer_reject(skb);                \
	} while (0)

/* Ask the nat table if it is due; bind and rewrite in a program of its own, which goes on with `then`. */
#define RUN_NAT(chain, side, then)                                \
	do {                                                      \
		if (HAS_NAT && unbound(p, side)) {                \
			p->bind_flags = 0;                        \
			RUN(chain);                               \
		}                                                 \
		p->manip = side;                                  \
		p->next = then;                                   \
	} while (0)

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

int nfparity_ingress(struct __sk_buff *skb)
{
	struct pkt *p = 0;

	if (skb->protocol != swap16(ETH_TYPE) || skb->pkt_type == OTHERHOST)
		return TC_ACT_OK;
	if (skb->ifindex == LOOPBACK_INDEX && skb->tc_index) {
		p = resume(skb);
		if (p && p->stage == AT_END)
			return pass(skb, p, AT_NOTHING);
		if (!p || p->stage != AT_LOOPBACK)
			return TC_ACT_SHOT;
		p->looped = 1;
	} else {
		p = claim_slot(skb);
		if (!p)
			return TC_ACT_SHOT;
		if (parse(skb, p))
			return TC_ACT_SHOT;
		p->mark = skb->mark;
	}
	set_in(p, skb->ifindex);
	set_out(p, 0);
	if (not_received(p))
		return TC_ACT_SHOT;
	p->bad_sum = !p->looped && bad_checksum(skb, p);
	if (p->fragment)
		return TC_ACT_SHOT; /* conntrack would put it together first; a tc program cannot */
	RUN(chain_raw_prerouting);
	p->incoming = 1;
	if (p->proto == PROTO_SCTP && !p->looped)
		programs.call(skb, PROGRAM_SCTP_VERIFY);
	programs.call(skb, PROGRAM_TRACK);
	return TC_ACT_SHOT;
}

int nfparity_track(struct __sk_buff *skb)
{
	struct pkt *p = slot_at(skb->cb[0]);

	if (!p)
		return TC_ACT_SHOT;
	if (!p->looped && !p->has_ct && p->ct_state != CT_UNTRACKED)
		track(skb, p);
	if (p->incoming)
		programs.call(skb, PROGRAM_PREROUTING);
	else
		programs.call(skb, PROGRAM_OUTPUT);
	return TC_ACT_SHOT;
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

/* Programs of their own for the verifier's sake: their loops are its longest. */
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
	unique_port(&new, p, manip);
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

int nfparity_prerouting(struct __sk_buff *skb)
{
	struct pkt *p = slot_at(skb->cb[0]);

	if (!p)
		return TC_ACT_SHOT;
	RUN(chain_mangle_prerouting);
	RUN_NAT(chain_nat_prerouting, MANIP_DST, PROGRAM_ARRIVED);
	return go_on(skb, p);
}

/* Routed: delivered here, or forwarded. */
int nfparity_arrived(struct __sk_buff *skb)
{
	struct pkt *p = slot_at(skb->cb[0]);
	int where;

	if (!p)
		return TC_ACT_SHOT;
	if (!p->looped) {
		if (martian(p))
			return TC_ACT_SHOT;
		where = arrives_here(p);
		if (where == NOWHERE)
			return pass(skb, p, AT_NOTHING); /* the stack drops it */
		if (where == AWAY)
			return pass(skb, p, AT_FORWARD);
	}
	programs.call(skb, PROGRAM_INPUT);
	return TC_ACT_SHOT;
}

int nfparity_input(struct __sk_buff *skb)
{
	struct pkt *p = slot_at(skb->cb[0]);

	if (!p)
		return TC_ACT_SHOT;
	RUN(chain_mangle_input);
	RUN(chain_filter_input);
	RUN(chain_security_input);
	RUN_NAT(chain_nat_input, MANIP_SRC, PROGRAM_DELIVER);
	return go_on(skb, p);
}

int nfparity_deliver(struct __sk_buff *skb)
{
	struct pkt *p = slot_at(skb->cb[0]);

	if (!p || confirm(p))
		return TC_ACT_SHOT;
	/* A reply to what was made here for the loopback address has it back before the stack looks at it,
	 * which takes that from lo alone. */
	if (p->iif != LOOPBACK_INDEX && is_loopback(p->saddr))
		return into_loopback(skb, p, AT_END);
	return pass(skb, p, AT_NOTHING);
}

int nfparity_egress(struct __sk_buff *skb)
{
	struct pkt *p = 0;

	if (skb->protocol != swap16(ETH_TYPE))
		return TC_ACT_OK;
	if (skb->tc_index) {
		p = resume(skb);
		if (!p)
			return TC_ACT_SHOT;
		if (p->stage == AT_END)
			return pass(skb, p, AT_NOTHING);
		set_out(p, skb->ifindex);
		if (p->stage == AT_ANSWER) {
			programs.call(skb, PROGRAM_ANSWER);
			return TC_ACT_SHOT;
		}
		if (p->stage != AT_FORWARD)
			return TC_ACT_SHOT;
		p->via = 0;
		programs.call(skb, PROGRAM_FORWARD);
		return TC_ACT_SHOT;
	}
	p = claim_slot(skb);
	if (!p || parse(skb, p))
		return TC_ACT_SHOT;
	p->mark = skb->mark;
	set_in(p, 0);
	set_out(p, skb->ifindex);
	if (p->fragment)
		return TC_ACT_SHOT;
	RUN(chain_raw_output);
	p->incoming = p->bad_sum = 0; /* checksums are verified in PREROUTING alone */
	programs.call(skb, PROGRAM_TRACK);
	return TC_ACT_SHOT;
}

int nfparity_output(struct __sk_buff *skb)
{
	struct pkt *p = slot_at(skb->cb[0]);
	u32 mark, oif = 0;
	addr via = 0;

	if (!p)
		return TC_ACT_SHOT;
	p->first_daddr = p->daddr;
	mark = p->mark;
	RUN(chain_mangle_output);
	if (p->mark != mark && route_output(p, &oif, &via))
		return TC_ACT_SHOT; /* ipt_mangle_out asks for the route again */
	p->rerouted = oif;
	p->via = via;
	RUN_NAT(chain_nat_output, MANIP_DST, PROGRAM_ROUTED);
	return go_on(skb, p);
}

/* A packet made here, after its destination was bound. */
int nfparity_routed(struct __sk_buff *skb)
{
	struct pkt *p = slot_at(skb->cb[0]);
	u32 oif = 0;
	addr via = 0;

	if (!p)
		return TC_ACT_SHOT;
	if (p->daddr != p->first_daddr) {
		if (route_output(p, &oif, &via)) /* ip_route_me_harder */
			return TC_ACT_SHOT;
		p->rerouted = oif;
		p->via = via;
	}
	/* The filter table still sees the device of the first route: the hook has begun with it. */
	RUN(chain_filter_output);
	RUN(chain_security_output);
	if (p->rerouted)
		set_out(p, p->rerouted);
	programs.call(skb, PROGRAM_POSTROUTING);
	return TC_ACT_SHOT;
}

int nfparity_forward(struct __sk_buff *skb)
{
	struct pkt *p = slot_at(skb->cb[0]);

	if (!p)
		return TC_ACT_SHOT;
	RUN(chain_mangle_forward);
	RUN(chain_filter_forward);
	RUN(chain_security_forward);
	programs.call(skb, PROGRAM_POSTROUTING);
	return TC_ACT_SHOT;
}

int nfparity_postrouting(struct __sk_buff *skb)
{
	struct pkt *p = slot_at(skb->cb[0]);

	if (!p)
		return TC_ACT_SHOT;
	RUN(chain_mangle_postrouting);
	RUN_NAT(chain_nat_postrouting, MANIP_SRC, PROGRAM_LEAVE);
	return go_on(skb, p);
}

INLINE int redirect_to_group(struct __sk_buff *skb, struct pkt *p)
{
	struct device *d = devices.lookup(&p->oif);
	u8 mac[12];

	if (!d)
		return TC_ACT_SHOT;
	group_mac(mac, p->daddr);
	__builtin_memcpy(mac + 6, d->mac, 6);
	bpf_skb_store_bytes(skb, 0, mac, sizeof(mac), 0);
	return bpf_redirect(p->oif, 0);
}

int nfparity_leave(struct __sk_buff *skb)
{
	struct pkt *p = slot_at(skb->cb[0]);
	struct next_hop hop = {.family = FAMILY};

	if (!p || confirm(p))
		return TC_ACT_SHOT;
	if (p->oif == skb->ifindex && !p->answer && (!p->via || p->oif == LOOPBACK_INDEX))
		return pass(skb, p, p->oif == LOOPBACK_INDEX ? AT_LOOPBACK : AT_NOTHING);
	if (p->oif == LOOPBACK_INDEX)
		return into_loopback(skb, p, AT_LOOPBACK);
	skb->tc_index = p->slot;
	pass(skb, p, AT_END);
	if (is_group(p->daddr))
		return redirect_to_group(skb, p);
	hop.address = to_wire(p->via);
	return redirect_to_neighbour(p->oif, &hop, sizeof(hop), 0);
}
