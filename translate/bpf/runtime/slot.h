/* A packet's slot, which carries its state from one program to the next.
 *
 * Between ingress and egress, and through lo, tc_index is the number of the packet's slot. Most packets need
 * their slot only while the programs run. The next packet on this CPU then uses it again, while it is in the
 * processor's cache.
 */

/* tc_index of a packet that has passed all chains and only has to leave. No slot has this number. */
#define TC_INDEX_DONE 0x8000

INLINE struct pkt *slot_at(u32 number)
{
	number &= SLOTS - 1;
	return slots.lookup(&number);
}

/* The number of the slot after `last`, the last slot on this CPU that a packet has kept. */
INLINE u32 next_slot(u32 last)
{
	return (bpf_get_smp_processor_id() * SLOTS_EACH + last % (SLOTS_EACH - 1) + 1) & (SLOTS - 1); /* 0 means no slot */
}

/* Keep the packet's slot after the programs have run. */
INLINE void keep_slot(struct pkt *p)
{
	u32 zero = 0;
	u32 *counter = slot_counter.lookup(&zero);

	if (counter && next_slot(*counter) == p->slot)
		*counter = p->slot & (SLOTS_EACH - 1);
}

INLINE struct pkt *claim_slot(struct __sk_buff *skb)
{
	u32 zero = 0, number;
	u32 *counter = slot_counter.lookup(&zero);
	struct pkt *p;

	if (!counter)
		return 0;
	number = next_slot(*counter);
	p = slot_at(number);
	if (!p)
		return 0;
	p->slot = number;
	p->stage = AT_NOTHING;
	p->has_ct = p->fresh = p->related = p->dir = p->looped = p->answer = p->attached = p->owner = 0;
	p->gre_key = 0;
	p->gre = GRE_SHORT; /* an ICMP error keeps the kind of the packet that it quotes until it leaves */
	p->ct_state = CT_INVALID;
	skb->cb[0] = number;
	return p;
}

INLINE void set_in(struct pkt *p, u32 index)
{
	struct device *d = index ? devices.lookup(&index) : 0;

	p->iif = index;
	p->in_flags = d ? d->flags : 0;
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

/* Give the packet to the stack; `stage` says where the program takes it up again. */
INLINE int pass(struct __sk_buff *skb, struct pkt *p, u8 stage)
{
	skb->mark = p->mark;
	p->stage = stage;
	p->left_saddr = p->saddr;
	p->left_daddr = p->daddr;
	p->left_id = p->ip_id;
	skb->tc_classid = stage == AT_NOTHING ? 0 : p->slot;
	if (stage != AT_NOTHING)
		keep_slot(p);
	return TC_ACT_OK;
}

/* Take up the packet whose slot tc_index names. Returns 0 if it is not the packet that used the slot. */
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

/* Redirect the packet to the ingress of lo, where it loses its attached route, which leads elsewhere. The
 * hardware address of lo is zero. */
INLINE int into_loopback(struct __sk_buff *skb, struct pkt *p, u8 stage)
{
	u8 zero[12] = {};

	skb->tc_index = p->slot;
	p->priority = skb->priority;
	pass(skb, p, stage);
	bpf_skb_store_bytes(skb, 0, zero, sizeof(zero), 0);
	return bpf_redirect(LOOPBACK_INDEX, BPF_F_INGRESS);
}
