/* The chains, generated. */

#ifdef __BIG_ENDIAN__
#define NAME(x) (x##ULL)
#else
#define NAME(x) __builtin_bswap64(x##ULL)
#endif

/* ip.daddr . l4.proto . l4.dport */
struct key_0 { struct wire k0; u32 k1; u32 k2; };
BPF_F_TABLE("hash", struct key_0, struct entry, lookup_0, MAX_ENTRIES_OF_lookup_0, BPF_F_NO_PREALLOC);

/* nat/KUBE-SEP-A */
INLINE int c0_nat_KUBE_SEP_A(struct __sk_buff *skb, struct pkt *p)
{
	/* line 21 */
	if (p->saddr == 0xaf4000b) {
		p->mark = (p->mark & ~0x4000) ^ 0x4000;
	}
	/* line 22 */
	if (p->proto == 0x6 && recent(0, p->saddr, 0, RECENT_SET, 0)) {
		return ask_nat(p, 0xaf4000b, 0xaf4000b, 0x18eb, 0x18eb, BIND_ADDRESS | BIND_PORTS);
	}
	return CONTINUE;
}

/* nat/KUBE-SEP-B */
INLINE int c1_nat_KUBE_SEP_B(struct __sk_buff *skb, struct pkt *p)
{
	/* line 23 */
	if (p->saddr == 0xaf4000c) {
		p->mark = (p->mark & ~0x4000) ^ 0x4000;
	}
	/* line 24 */
	if (p->proto == 0x6 && recent(1, p->saddr, 0, RECENT_SET, 0)) {
		return ask_nat(p, 0xaf4000c, 0xaf4000c, 0x18eb, 0x18eb, BIND_ADDRESS | BIND_PORTS);
	}
	return CONTINUE;
}

/* nat/KUBE-SEP-C */
INLINE int c2_nat_KUBE_SEP_C(struct __sk_buff *skb, struct pkt *p)
{
	/* line 25 */
	if (p->saddr == 0xaf4000d) {
		p->mark = (p->mark & ~0x4000) ^ 0x4000;
	}
	/* line 26 */
	if (p->proto == 0x6 && recent(2, p->saddr, 0, RECENT_SET, 0)) {
		return ask_nat(p, 0xaf4000d, 0xaf4000d, 0x18eb, 0x18eb, BIND_ADDRESS | BIND_PORTS);
	}
	return CONTINUE;
}

/* nat/KUBE-SVC-X */
INLINE int c3_nat_KUBE_SVC_X(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	u32 drawn;
	/* line 29 */
	if (!((p->saddr & 0xffff0000) == 0xaf40000) && p->daddr == 0xa600032 && p->proto == 0x6 && p->has_ports && p->dport == 0x18eb) {
		p->mark = (p->mark & ~0x4000) ^ 0x4000;
	}
	/* line 30 */
	if (recent(0, p->saddr, 2, RECENT_RCHECK, 0)) {
		if ((verdict = c0_nat_KUBE_SEP_A(skb, p)))
			return verdict;
	}
	/* line 31 */
	if (recent(1, p->saddr, 2, RECENT_RCHECK, 0)) {
		if ((verdict = c1_nat_KUBE_SEP_B(skb, p)))
			return verdict;
	}
	/* line 32 */
	if (recent(2, p->saddr, 2, RECENT_RCHECK, 0)) {
		if ((verdict = c2_nat_KUBE_SEP_C(skb, p)))
			return verdict;
	}
	/* line 33 */
	drawn = bpf_get_prandom_u32() >> 1;
	if (drawn < 0x2aaaaaab) {
		if ((verdict = c0_nat_KUBE_SEP_A(skb, p)))
			return verdict;
	} else if (drawn < 0x55555556) {
		if ((verdict = c1_nat_KUBE_SEP_B(skb, p)))
			return verdict;
	} else {
		if ((verdict = c2_nat_KUBE_SEP_C(skb, p)))
			return verdict;
	}
	return CONTINUE;
}

/* nat/UPDATING */
INLINE int c4_nat_UPDATING(struct __sk_buff *skb, struct pkt *p)
{
	/* line 36 */
	if (recent(4, p->saddr & 0xffffff00, 2, RECENT_UPDATE, 0)) {
		return ask_nat(p, 0xaf4000c, 0xaf4000c, 0, 0, BIND_ADDRESS);
	}
	/* line 37 */
	(void)(recent(4, p->saddr & 0xffffff00, 0, RECENT_SET, 0));
	/* line 38 */
	return ask_nat(p, 0xaf4000b, 0xaf4000b, 0, 0, BIND_ADDRESS);
	return CONTINUE;
}

/* nat/KUBE-SERVICES */
INLINE int c5_nat_KUBE_SERVICES(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 27 */
	if (p->has_ports) {
		{
			struct key_0 key = { .k0 = to_wire(p->daddr), .k1 = p->proto, .k2 = p->dport };
			struct entry *e = lookup_0.lookup(&key);
			if (e) {
				if (e->code == 1) {
					if ((verdict = c3_nat_KUBE_SVC_X(skb, p)))
						return verdict;
				} else if (e->code == 2) {
					if ((verdict = c4_nat_UPDATING(skb, p)))
						return verdict;
				}
			}
		}
	}
	return CONTINUE;
}

/* nat/PREROUTING */
INLINE int c6_nat_PREROUTING(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 14 */
	if ((verdict = c5_nat_KUBE_SERVICES(skb, p)))
		return verdict;
	return CONTINUE;
}

INLINE int chain_nat_prerouting(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c6_nat_PREROUTING(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* nat/INPUT */
INLINE int c7_nat_INPUT(struct __sk_buff *skb, struct pkt *p)
{
	return CONTINUE;
}

INLINE int chain_nat_input(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c7_nat_INPUT(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* nat/OUTPUT */
INLINE int c8_nat_OUTPUT(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 15 */
	if ((verdict = c5_nat_KUBE_SERVICES(skb, p)))
		return verdict;
	return CONTINUE;
}

INLINE int chain_nat_output(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c8_nat_OUTPUT(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* nat/KUBE-POSTROUTING */
INLINE int c9_nat_KUBE_POSTROUTING(struct __sk_buff *skb, struct pkt *p)
{
	/* line 18 */
	if (!((p->mark & 0x4000) == 0x4000)) {
		return CONTINUE;
	}
	/* line 19 */
	p->mark = (p->mark & ~0x0) ^ 0x4000;
	/* line 20 */
	return ask_nat(p, 0, 0, 0, 0, BIND_MASQUERADE | BIND_RANDOM);
	return CONTINUE;
}

/* nat/POSTROUTING */
INLINE int c10_nat_POSTROUTING(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 16 */
	if ((verdict = c9_nat_KUBE_POSTROUTING(skb, p)))
		return verdict;
	return CONTINUE;
}

INLINE int chain_nat_postrouting(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c10_nat_POSTROUTING(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* filter/GREETING */
INLINE int c11_filter_GREETING(struct __sk_buff *skb, struct pkt *p)
{
	/* line 46 */
	if (p->proto == 0x11 && p->has_ports && p->dport == 0x1b58 && recent(3, p->saddr, 0, RECENT_SET, 0)) {
		return ACCEPT;
	}
	/* line 47 */
	if (p->proto == 0x11 && p->has_ports && p->dport == 0x1b59 && recent(3, p->saddr, 0, RECENT_REMOVE, 0)) {
		p->reject = 3;
		return REJECT;
	}
	/* line 48 */
	if (p->proto == 0x11 && p->has_ports && p->dport == 0x1b5a && recent(3, p->saddr, 2, RECENT_RCHECK, 1)) {
		return DROP;
	}
	/* line 49 */
	if (p->proto == 0x11 && recent(3, p->daddr, 0, RECENT_RCHECK, 0)) {
		p->reject = 10;
		return REJECT;
	}
	return CONTINUE;
}

/* filter/FORWARD */
INLINE int c12_filter_FORWARD(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 45 */
	if (p->proto == 0x11 && p->has_ports && (p->dport >= 0x1b58 && p->dport <= 0x1b5b)) {
		if ((verdict = c11_filter_GREETING(skb, p)))
			return verdict;
	}
	return CONTINUE;
}

INLINE int chain_filter_forward(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c12_filter_FORWARD(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

#define HAS_NAT 1
#define chain_raw_prerouting(skb, p) ACCEPT
#define chain_raw_output(skb, p) ACCEPT
#define chain_mangle_prerouting(skb, p) ACCEPT
#define chain_mangle_input(skb, p) ACCEPT
#define chain_mangle_forward(skb, p) ACCEPT
#define chain_mangle_output(skb, p) ACCEPT
#define chain_mangle_postrouting(skb, p) ACCEPT
#define chain_filter_input(skb, p) ACCEPT
#define chain_filter_output(skb, p) ACCEPT
#define chain_security_input(skb, p) ACCEPT
#define chain_security_forward(skb, p) ACCEPT
#define chain_security_output(skb, p) ACCEPT

/* lookup_0: ip.daddr . l4.proto . l4.dport
 *   0xa600032 . 0x6 . 0x18eb : 1 (line 27)
 *   0xa600033 . 0x6 . 0x50 : 2 (line 28)
 */
