/* The chains, generated. */

#ifdef __BIG_ENDIAN__
#define NAME(x) (x##ULL)
#else
#define NAME(x) __builtin_bswap64(x##ULL)
#endif


/* mangle/PREROUTING */
INLINE int c0_mangle_PREROUTING(struct __sk_buff *skb, struct pkt *p)
{
	/* line 4 */
	if (p->proto == 0x11 && p->has_ports && p->dport == 0x1e61) {
		p->mark = (p->mark & ~0xff) ^ 0x11;
	}
	return CONTINUE;
}

INLINE int chain_mangle_prerouting(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c0_mangle_PREROUTING(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* mangle/FORWARD */
INLINE int c1_mangle_FORWARD(struct __sk_buff *skb, struct pkt *p)
{
	/* line 5 */
	if ((p->mark & 0xff) == 0x11) {
		p->mark = (p->mark & ~0xff) ^ 0x22;
	}
	return CONTINUE;
}

INLINE int chain_mangle_forward(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c1_mangle_FORWARD(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* nat/PREROUTING */
INLINE int c2_nat_PREROUTING(struct __sk_buff *skb, struct pkt *p)
{
	/* line 26 */
	if (p->daddr == 0xa60001e && p->proto == 0x6 && p->has_ports && p->dport == 0x50) {
		return ask_nat(p, 0xaf40005, 0xaf40005, 0x2382, 0x2382, BIND_ADDRESS | BIND_PORTS);
	}
	/* line 27 */
	if (p->daddr == 0xa60001f && p->proto == 0x11 && p->has_ports && p->dport == 0x50) {
		return ask_nat(p, 0xaf40005, 0xaf40005, 0x2383, 0x2383, BIND_ADDRESS | BIND_PORTS);
	}
	/* line 28 */
	if (p->proto == 0x6 && p->has_ports && p->dport == 0x1f91) {
		return ask_nat(p, 0, 0, 0x16, 0x16, BIND_REDIRECT | BIND_PORTS);
	}
	/* line 29 */
	if (p->daddr == 0xac120002 && p->proto == 0x6 && p->has_ports && ((p->dport >= 0x7530 && p->dport <= 0x753a) || p->dport == 0x7918)) {
		return ask_nat(p, 0xaf40003, 0xaf40004, 0x1f40, 0x1f4a, BIND_ADDRESS | BIND_PORTS);
	}
	return CONTINUE;
}

INLINE int chain_nat_prerouting(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c2_nat_PREROUTING(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* nat/OUTPUT */
INLINE int c3_nat_OUTPUT(struct __sk_buff *skb, struct pkt *p)
{
	/* line 30 */
	if (p->daddr == 0xa60001e && p->proto == 0x6 && p->has_ports && p->dport == 0x50) {
		return ask_nat(p, 0xaf40005, 0xaf40005, 0x2384, 0x2384, BIND_ADDRESS | BIND_PORTS);
	}
	/* line 31 */
	if (p->proto == 0x11 && p->has_ports && p->dport == 0x14b4) {
		return ask_nat(p, 0, 0, 0x35, 0x35, BIND_REDIRECT | BIND_PORTS);
	}
	/* line 32 */
	if (p->daddr == 0x7f000001 && p->proto == 0x6 && p->has_ports && p->dport == 0x7530) {
		return ask_nat(p, 0xaf40003, 0xaf40003, 0x1f40, 0x1f40, BIND_ADDRESS | BIND_PORTS);
	}
	return CONTINUE;
}

INLINE int chain_nat_output(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c3_nat_OUTPUT(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* nat/POSTROUTING */
INLINE int c4_nat_POSTROUTING(struct __sk_buff *skb, struct pkt *p)
{
	/* line 33 */
	if ((p->saddr & 0xffff0000) == 0xaf40000 && (p->out[0] == NAME(0x6574683000000000) && p->out[1] == NAME(0x0000000000000000)) && p->proto == 0x6) {
		return ask_nat(p, 0xac120002, 0xac120002, 0x7d0, 0xbb8, BIND_ADDRESS | BIND_PORTS);
	}
	/* line 34 */
	if ((p->saddr & 0xffff0000) == 0xaf40000 && (p->out[0] == NAME(0x6574683000000000) && p->out[1] == NAME(0x0000000000000000)) && p->proto == 0x11) {
		return ask_nat(p, 0xac120002, 0xac120002, 0, 0, BIND_ADDRESS);
	}
	/* line 35 */
	if ((p->saddr & 0xff000000) == 0x7f000000 && !((p->out[0] == NAME(0x6c6f000000000000) && p->out[1] == NAME(0x0000000000000000)))) {
		return ask_nat(p, 0, 0, 0, 0, BIND_MASQUERADE);
	}
	return CONTINUE;
}

INLINE int chain_nat_postrouting(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c4_nat_POSTROUTING(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* filter/INPUT */
INLINE int c5_filter_INPUT(struct __sk_buff *skb, struct pkt *p)
{
	/* line 11 */
	if (p->proto == 0x6 && p->has_ports && p->dport == 0x16) {
		p->reject = 255;
		return REJECT;
	}
	/* line 12 */
	if (p->proto == 0x11 && p->has_ports && p->dport == 0x35) {
		p->reject = 3;
		return REJECT;
	}
	/* line 13 */
	if ((p->in[0] == NAME(0x6c6f000000000000) && p->in[1] == NAME(0x0000000000000000)) && p->proto == 0x6 && p->has_ports && p->dport == 0x50) {
		p->reject = 13;
		return REJECT;
	}
	return CONTINUE;
}

INLINE int chain_filter_input(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c5_filter_INPUT(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* filter/FORWARD */
INLINE int c6_filter_FORWARD(struct __sk_buff *skb, struct pkt *p)
{
	/* line 14 */
	if (p->daddr == 0xa600014 && p->proto == 0x6 && p->has_ports && p->dport == 0x50) {
		p->reject = 3;
		return REJECT;
	}
	/* line 15 */
	if (p->proto == 0x6 && p->has_ports && p->dport == 0x2382) {
		p->reject = 255;
		return REJECT;
	}
	/* line 16 */
	if (p->proto == 0x11 && p->has_ports && p->dport == 0x2383) {
		p->reject = 10;
		return REJECT;
	}
	/* line 17 */
	if (((p->in[0] & NAME(0xffffff0000000000)) == NAME(0x706f640000000000)) && (p->out[0] == NAME(0x6574683000000000) && p->out[1] == NAME(0x0000000000000000)) && p->proto == 0x1) {
		p->reject = 0;
		return REJECT;
	}
	return CONTINUE;
}

INLINE int chain_filter_forward(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c6_filter_FORWARD(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* filter/OUTPUT */
INLINE int c7_filter_OUTPUT(struct __sk_buff *skb, struct pkt *p)
{
	/* line 18 */
	if (p->daddr == 0xa600014) {
		p->reject = 3;
		return REJECT;
	}
	/* line 19 */
	if (p->proto == 0x6 && p->has_ports && p->dport == 0x2384) {
		p->reject = 255;
		return REJECT;
	}
	/* line 20 */
	if (p->proto == 0x1 && p->ct_state == 0x1) {
		return DROP;
	}
	return CONTINUE;
}

INLINE int chain_filter_output(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c7_filter_OUTPUT(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

#define HAS_NAT 1
#define chain_raw_prerouting(skb, p) ACCEPT
#define chain_raw_output(skb, p) ACCEPT
#define chain_mangle_input(skb, p) ACCEPT
#define chain_mangle_output(skb, p) ACCEPT
#define chain_mangle_postrouting(skb, p) ACCEPT
#define chain_nat_input(skb, p) ACCEPT
#define chain_security_input(skb, p) ACCEPT
#define chain_security_forward(skb, p) ACCEPT
#define chain_security_output(skb, p) ACCEPT

