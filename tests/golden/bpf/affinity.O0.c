/* The chains, generated. */

#ifdef __BIG_ENDIAN__
#define NAME(x) (x##ULL)
#else
#define NAME(x) __builtin_bswap64(x##ULL)
#endif


/* nat/KUBE-MARK-MASQ */
INLINE int c0_nat_KUBE_MARK_MASQ(struct __sk_buff *skb, struct pkt *p)
{
	/* line 17 */
	p->mark = (p->mark & ~0x4000) ^ 0x4000;
	return CONTINUE;
}

/* nat/KUBE-SEP-A */
INLINE int c1_nat_KUBE_SEP_A(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 21 */
	if (p->saddr == 0xaf4000b) {
		if ((verdict = c0_nat_KUBE_MARK_MASQ(skb, p)))
			return verdict;
	}
	/* line 22 */
	if (p->proto == 0x6 && recent(0, p->saddr, 0, RECENT_SET, 0)) {
		return ask_nat(p, 0xaf4000b, 0xaf4000b, 0x18eb, 0x18eb, BIND_ADDRESS | BIND_PORTS);
	}
	return CONTINUE;
}

/* nat/KUBE-SEP-B */
INLINE int c2_nat_KUBE_SEP_B(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 23 */
	if (p->saddr == 0xaf4000c) {
		if ((verdict = c0_nat_KUBE_MARK_MASQ(skb, p)))
			return verdict;
	}
	/* line 24 */
	if (p->proto == 0x6 && recent(1, p->saddr, 0, RECENT_SET, 0)) {
		return ask_nat(p, 0xaf4000c, 0xaf4000c, 0x18eb, 0x18eb, BIND_ADDRESS | BIND_PORTS);
	}
	return CONTINUE;
}

/* nat/KUBE-SEP-C */
INLINE int c3_nat_KUBE_SEP_C(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 25 */
	if (p->saddr == 0xaf4000d) {
		if ((verdict = c0_nat_KUBE_MARK_MASQ(skb, p)))
			return verdict;
	}
	/* line 26 */
	if (p->proto == 0x6 && recent(2, p->saddr, 0, RECENT_SET, 0)) {
		return ask_nat(p, 0xaf4000d, 0xaf4000d, 0x18eb, 0x18eb, BIND_ADDRESS | BIND_PORTS);
	}
	return CONTINUE;
}

/* nat/KUBE-SVC-X */
INLINE int c4_nat_KUBE_SVC_X(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 29 */
	if (!((p->saddr & 0xffff0000) == 0xaf40000) && p->daddr == 0xa600032 && p->proto == 0x6 && p->has_ports && p->dport == 0x18eb) {
		if ((verdict = c0_nat_KUBE_MARK_MASQ(skb, p)))
			return verdict;
	}
	/* line 30 */
	if (recent(0, p->saddr, 2, RECENT_RCHECK, 0)) {
		if ((verdict = c1_nat_KUBE_SEP_A(skb, p)))
			return verdict;
	}
	/* line 31 */
	if (recent(1, p->saddr, 2, RECENT_RCHECK, 0)) {
		if ((verdict = c2_nat_KUBE_SEP_B(skb, p)))
			return verdict;
	}
	/* line 32 */
	if (recent(2, p->saddr, 2, RECENT_RCHECK, 0)) {
		if ((verdict = c3_nat_KUBE_SEP_C(skb, p)))
			return verdict;
	}
	/* line 33 */
	if ((bpf_get_prandom_u32() >> 1) < 0x2aaaaaab) {
		if ((verdict = c1_nat_KUBE_SEP_A(skb, p)))
			return verdict;
	}
	/* line 34 */
	if ((bpf_get_prandom_u32() >> 1) < 0x40000000) {
		if ((verdict = c2_nat_KUBE_SEP_B(skb, p)))
			return verdict;
	}
	/* line 35 */
	if ((verdict = c3_nat_KUBE_SEP_C(skb, p)))
		return verdict;
	return CONTINUE;
}

/* nat/UPDATING */
INLINE int c5_nat_UPDATING(struct __sk_buff *skb, struct pkt *p)
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
INLINE int c6_nat_KUBE_SERVICES(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 27 */
	if (p->daddr == 0xa600032 && p->proto == 0x6 && p->has_ports && p->dport == 0x18eb) {
		if ((verdict = c4_nat_KUBE_SVC_X(skb, p)))
			return verdict;
	}
	/* line 28 */
	if (p->daddr == 0xa600033 && p->proto == 0x6 && p->has_ports && p->dport == 0x50) {
		if ((verdict = c5_nat_UPDATING(skb, p)))
			return verdict;
	}
	return CONTINUE;
}

/* nat/PREROUTING */
INLINE int c7_nat_PREROUTING(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 14 */
	if ((verdict = c6_nat_KUBE_SERVICES(skb, p)))
		return verdict;
	return CONTINUE;
}

INLINE int chain_nat_prerouting(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c7_nat_PREROUTING(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* nat/INPUT */
INLINE int c8_nat_INPUT(struct __sk_buff *skb, struct pkt *p)
{
	return CONTINUE;
}

INLINE int chain_nat_input(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c8_nat_INPUT(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* nat/OUTPUT */
INLINE int c9_nat_OUTPUT(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 15 */
	if ((verdict = c6_nat_KUBE_SERVICES(skb, p)))
		return verdict;
	return CONTINUE;
}

INLINE int chain_nat_output(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c9_nat_OUTPUT(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* nat/KUBE-POSTROUTING */
INLINE int c10_nat_KUBE_POSTROUTING(struct __sk_buff *skb, struct pkt *p)
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
INLINE int c11_nat_POSTROUTING(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 16 */
	if ((verdict = c10_nat_KUBE_POSTROUTING(skb, p)))
		return verdict;
	return CONTINUE;
}

INLINE int chain_nat_postrouting(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c11_nat_POSTROUTING(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* filter/INPUT */
INLINE int c12_filter_INPUT(struct __sk_buff *skb, struct pkt *p)
{
	return CONTINUE;
}

INLINE int chain_filter_input(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c12_filter_INPUT(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* filter/GREETING */
INLINE int c13_filter_GREETING(struct __sk_buff *skb, struct pkt *p)
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
INLINE int c14_filter_FORWARD(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 45 */
	if (p->proto == 0x11 && p->has_ports && (p->dport >= 0x1b58 && p->dport <= 0x1b5b)) {
		if ((verdict = c13_filter_GREETING(skb, p)))
			return verdict;
	}
	return CONTINUE;
}

INLINE int chain_filter_forward(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c14_filter_FORWARD(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* filter/OUTPUT */
INLINE int c15_filter_OUTPUT(struct __sk_buff *skb, struct pkt *p)
{
	return CONTINUE;
}

INLINE int chain_filter_output(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c15_filter_OUTPUT(skb, p);
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
#define chain_security_input(skb, p) ACCEPT
#define chain_security_forward(skb, p) ACCEPT
#define chain_security_output(skb, p) ACCEPT

