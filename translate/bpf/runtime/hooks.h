/* The chains that run at each place on a packet's path through the stack.
 *
 * The kernel still routes, so TTL, "no route", ICMP redirects and martian checks are the kernel's:
 *
 *   ingress of a device   PREROUTING, and INPUT when the destination is local
 *   egress of a device    FORWARD and POSTROUTING, for a packet that came in somewhere
 *                         OUTPUT and POSTROUTING, for a packet made here
 *
 * ip_forward decrements the TTL before FORWARD, and looks up the neighbour after POSTROUTING. A tc program at
 * the egress of the chosen device therefore sees the packet as FORWARD would. A packet made here is routed
 * again if its destination has changed, and is redirected to another device or into lo.
 */

/* BCC does not rewrite map calls inside macros. */
INLINE int answer_reject(struct __sk_buff *skb)
{
	programs.call(skb, PROGRAM_REJECT);
	return failed();
}

#define RUN(chain)                                                \
	do {                                                      \
		int verdict_ = chain(skb, p);                     \
		if (verdict_ == DROP)                             \
			return TC_ACT_SHOT;                       \
		if (verdict_ == REJECT)                           \
			return answer_reject(skb);                \
	} while (0)

/* Run a chain of nat if this side is not bound yet. The binding program then continues with `then`. */
#define RUN_NAT(chain, side, then)                                \
	do {                                                      \
		p->manip = side;                                  \
		if (HAS_NAT && unbound(p, side)) {                \
			p->bind_flags = 0;                        \
			RUN(chain);                               \
		}                                                 \
		p->next = then;                                   \
	} while (0)

/* Whether the program is switched on. Otherwise packets go on to the next filter. */
INLINE int is_open(void)
{
	u32 zero = 0;
	u32 *open = gate.lookup(&zero);

	return open && *open;
}

/* Send the packet out of the device p->oif to the next hop p->via. */
INLINE int to_neighbour(struct __sk_buff *skb, struct pkt *p)
{
	struct next_hop hop = {.family = FAMILY, .address = to_wire(p->via)};

	pass(skb, p, AT_NOTHING);
	skb->tc_index = TC_INDEX_DONE;
	return redirect_to_neighbour(p->oif, &hop, sizeof(hop), 0);
}

/* The same for a packet without a route. __bpf_redirect_neigh gives it one. The packet waits for the neighbour of
 * this route, and the kernel reports an error by it if the neighbour does not answer (dst_link_failure). */
INLINE int to_awaited_neighbour(struct __sk_buff *skb, struct pkt *p)
{
	pass(skb, p, AT_NOTHING);
	skb->tc_index = TC_INDEX_DONE;
	skb->priority = p->priority; /* lo has reset it (____dev_forward_skb) */
	return redirect_to_neighbour(p->oif, 0, 0, 0);
}

/* Whether the next hop's hardware address is not known yet. */
INLINE int awaits_neighbour(struct __sk_buff *skb, struct pkt *p)
{
	struct bpf_fib_lookup way = {.family = FAMILY, .ifindex = p->oif};

	set_way(&way, p);
	return bpf_fib_lookup(skb, &way, sizeof(way), BPF_FIB_LOOKUP_OUTPUT) == BPF_FIB_LKUP_RET_NO_NEIGH;
}

#if COMPILES_RAW
int nfparity_ingress(struct __sk_buff *skb)
{
	struct pkt *p = 0;

	if (skb->protocol != swap16(ETH_TYPE) || skb->pkt_type == OTHERHOST || !is_open())
		return TC_ACT_UNSPEC;
	if (skb->ifindex == LOOPBACK_INDEX && skb->tc_index) {
		p = resume(skb);
		if (p && p->stage == AT_DELIVERY)
			return pass(skb, p, AT_NOTHING);
		if (p && p->stage == AT_NEIGHBOUR)
			return to_awaited_neighbour(skb, p);
		if (!p || p->stage != AT_LOOPBACK)
			return lose(COUNT_LOST_SLOT);
		p->looped = 1;
	} else {
		p = claim_slot(skb);
		if (!p)
			return failed();
		if (parse(skb, p) || is_damaged(skb, p))
			return lose(COUNT_MALFORMED);
		p->mark = skb->mark;
	}
	set_in(p, skb->ifindex);
	set_out(p, 0);
	if (READS_FRAMES)
		parse_frame(skb, p);
	if (not_received(p))
		return TC_ACT_SHOT;
	p->bad_sum = !p->looped && !p->fragment && bad_checksum(skb, p, 0);
	if (!PASSES_FRAGMENTS && (p->fragment || (p->fragment_at && !p->looped && strip_fragment_header(skb, p))))
		return lose(COUNT_FRAGMENT); /* conntrack would reassemble it; a tc program cannot */
	RUN(chain_raw_prerouting);
	p->incoming = 1;
	if (p->proto == PROTO_SCTP && !p->looped && !p->fragment) {
		begin_sctp_checksum(p);
		programs.call(skb, PROGRAM_SCTP_VERIFY);
	}
	programs.call(skb, PROGRAM_TRACK);
	return failed();
}
#endif

INLINE int handle_track(struct __sk_buff *skb, struct pkt *p)
{
	if (!p->looped && !p->has_ct && p->ct_state != CT_UNTRACKED && !p->fragment)
		track(skb, p);
	if (p->incoming)
		programs.call(skb, PROGRAM_PREROUTING);
	else if (p->iif)
		programs.call(skb, PROGRAM_FORWARD);
	else
		programs.call(skb, PROGRAM_OUTPUT);
	return failed();
}

INLINE int handle_prerouting(struct __sk_buff *skb, struct pkt *p)
{
	RUN(chain_mangle_prerouting);
	RUN_NAT(chain_nat_prerouting, MANIP_DST, PROGRAM_ARRIVED);
	return go_on(skb, p);
}

/* Continue with INPUT or FORWARD, as the routing of the packet requires. */
INLINE int handle_arrived(struct __sk_buff *skb, struct pkt *p)
{
	int where;

	if (!p->looped) {
		if (martian(p) || (source_refused(p) && !unroutable(skb, p)))
			return TC_ACT_SHOT;
		if (forwards_directly(skb, p)) {
			programs.call(skb, PROGRAM_FORWARD);
			return failed();
		}
		where = arrives_here(p);
		if (where == NOWHERE)
			return pass(skb, p, AT_NOTHING); /* the stack drops it */
		if (where == AWAY)
			return pass(skb, p, AT_FORWARD);
	}
	programs.call(skb, PROGRAM_INPUT);
	return failed();
}

INLINE int handle_input(struct __sk_buff *skb, struct pkt *p)
{
	if (PASSES_FRAGMENTS && FAMILY == 2 && p->fragment)
		return lose(COUNT_FRAGMENT); /* ip_local_deliver would reassemble it */
	RUN(chain_mangle_input);
	RUN(chain_filter_input);
	RUN(chain_security_input);
	RUN_NAT(chain_nat_input, MANIP_SRC, PROGRAM_DELIVER);
	return go_on(skb, p);
}

INLINE int handle_deliver(struct __sk_buff *skb, struct pkt *p)
{
	if (not_entered(skb, p, PROGRAM_DELIVER))
		return TC_ACT_SHOT;
	/* A packet made here for a loopback address may have been sent elsewhere by DNAT. Its reply has the loopback
	 * address as its source again, which the stack accepts on lo only. */
	if (p->iif != LOOPBACK_INDEX && is_loopback(p->saddr))
		return into_loopback(skb, p, AT_DELIVERY);
	return pass(skb, p, AT_NOTHING);
}

#if COMPILES_RAW
int nfparity_egress(struct __sk_buff *skb)
{
	struct pkt *p = 0;

	if (skb->protocol != swap16(ETH_TYPE) || !is_open())
		return TC_ACT_UNSPEC;
	if (skb->tc_index == TC_INDEX_DONE) {
		skb->tc_classid = 0;
		return TC_ACT_OK;
	}
	if (skb->tc_index) {
		p = resume(skb);
		if (!p)
			return lose(COUNT_LOST_SLOT);
		set_out(p, skb->ifindex);
		if (p->stage == AT_ANSWER) {
			programs.call(skb, PROGRAM_ANSWER);
			return failed();
		}
		if (p->stage != AT_FORWARD)
			return lose(COUNT_LOST_SLOT);
		p->via = 0;
		programs.call(skb, PROGRAM_FORWARD);
		return failed();
	}
	p = claim_slot(skb);
	if (!p)
		return failed();
	if (parse(skb, p))
		return lose(COUNT_MALFORMED);
	p->mark = skb->mark;
	p->has_ether = p->type = 0; /* a packet made here has the type PACKET_HOST and no frame yet */
	/* A packet may have come in by a device without the program, or before it was attached: it begins at FORWARD. */
	set_in(p, skb->ingress_ifindex);
	set_out(p, skb->ifindex);
	if (p->fragment && (!PASSES_FRAGMENTS || !p->iif)) /* packets made here are cut into fragments behind the rules */
		return lose(COUNT_FRAGMENT);
	if (!p->iif) {
		p->attached = HAS_NOTRACK && is_about_untracked(skb, p);
		RUN(chain_raw_output);
	}
	p->incoming = p->bad_sum = p->via = 0; /* checksums are verified only in PREROUTING */
	programs.call(skb, PROGRAM_TRACK);
	return failed();
}
#endif

INLINE int handle_output(struct __sk_buff *skb, struct pkt *p)
{
	u32 mark, header, oif = 0;
	addr via = 0;

	p->first_daddr = p->daddr;
	mark = p->mark;
	header = routed_by(p);
	RUN(chain_mangle_output);
	if ((p->mark != mark || routed_by(p) != header || p->daddr != p->first_daddr) && route_output(p, &oif, &via))
		return TC_ACT_SHOT; /* ipt_mangle_out routes the packet again */
	p->rerouted = oif;
	p->via = via;
	RUN_NAT(chain_nat_output, MANIP_DST, PROGRAM_ROUTED);
	return go_on(skb, p);
}

/* Continue with a packet made here whose destination is bound. */
INLINE int handle_routed(struct __sk_buff *skb, struct pkt *p)
{
	u32 oif = 0;
	addr via = 0;

	if (p->daddr != p->first_daddr) {
		if (route_output(p, &oif, &via)) /* ip_route_me_harder */
			return TC_ACT_SHOT;
		p->rerouted = oif;
		p->via = via;
	}
	/* The filter table still sees the device of the first route, because it runs in the same hook. */
	RUN(chain_filter_output);
	RUN(chain_security_output);
	if (p->rerouted)
		set_out(p, p->rerouted);
	programs.call(skb, PROGRAM_POSTROUTING);
	return failed();
}

INLINE int handle_forward(struct __sk_buff *skb, struct pkt *p)
{
	RUN(chain_mangle_forward);
	RUN(chain_filter_forward);
	RUN(chain_security_forward);
	programs.call(skb, PROGRAM_POSTROUTING);
	return failed();
}

/* Whether the packet leaves by another device than the one whose address its connection has (nf_nat_oif_changed). */
INLINE int leaves_elsewhere(struct pkt *p)
{
	return p->has_ct && !p->related && !p->dir && p->conn.masqueraded && p->conn.masqueraded != p->oif;
}

INLINE int handle_postrouting(struct __sk_buff *skb, struct pkt *p)
{
	RUN(chain_mangle_postrouting);
	if (HAS_NAT && leaves_elsewhere(p)) {
		forget(&p->conn);
		return TC_ACT_SHOT;
	}
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

INLINE int handle_leave(struct __sk_buff *skb, struct pkt *p)
{
	if (not_entered(skb, p, PROGRAM_LEAVE))
		return TC_ACT_SHOT;
	if (p->oif == skb->ifindex && !p->answer && (!p->via || p->oif == LOOPBACK_INDEX))
		return pass(skb, p, p->oif == LOOPBACK_INDEX ? AT_LOOPBACK : AT_NOTHING);
	if (p->oif == LOOPBACK_INDEX)
		return into_loopback(skb, p, AT_LOOPBACK);
	if (is_group(p->daddr)) {
		pass(skb, p, AT_NOTHING);
		skb->tc_index = TC_INDEX_DONE;
		return redirect_to_group(skb, p);
	}
	/* neigh_update sends a waiting packet to the neighbour of the route that is attached to it, here the route from
	 * before DNAT. On the way through lo the packet loses this route, and gets a new one if its source allows it. */
	if (allows_route(p->saddr) && awaits_neighbour(skb, p))
		return into_loopback(skb, p, AT_NEIGHBOUR);
	return to_neighbour(skb, p);
}
