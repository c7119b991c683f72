/* The chains, generated. */

#ifdef __BIG_ENDIAN__
#define NAME(x) (x##ULL)
#else
#define NAME(x) __builtin_bswap64(x##ULL)
#endif

/* icmp.type */
struct key_0 { u32 k0; };
BPF_F_TABLE("hash", struct key_0, struct entry, lookup_0, MAX_ENTRIES_OF_lookup_0, BPF_F_NO_PREALLOC);
/* l4.proto . l4.dport */
struct key_1 { u32 k0; u32 k1; };
BPF_F_TABLE("hash", struct key_1, struct entry, lookup_1, MAX_ENTRIES_OF_lookup_1, BPF_F_NO_PREALLOC);
/* l4.proto . l4.dport */
struct key_2 { u32 k0; u32 k1; };
BPF_F_TABLE("hash", struct key_2, struct entry, lookup_2, MAX_ENTRIES_OF_lookup_2, BPF_F_NO_PREALLOC);

/* raw/PREROUTING */
INLINE int c0_raw_PREROUTING(struct __sk_buff *skb, struct pkt *p)
{
	/* line 5 */
	if (p->daddr == ADDRESS(0xfd00000100000000, 0x77) && p->proto == 0x11 && p->has_ports && p->dport == 0x7b) {
		if (!p->has_ct && !p->attached)
			p->ct_state = CT_UNTRACKED;
	}
	return CONTINUE;
}

INLINE int chain_raw_prerouting(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c0_raw_PREROUTING(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* mangle/PREROUTING */
INLINE int c1_mangle_PREROUTING(struct __sk_buff *skb, struct pkt *p)
{
	/* line 13 */
	if ((p->saddr & ADDRESS(0xffffffffffffffff, 0x0)) == ADDRESS(0xfd00000100000000, 0x0) && !((p->daddr & ADDRESS(0xffff000000000000, 0x0)) == ADDRESS(0xfd00000000000000, 0x0))) {
		p->mark = (p->mark & ~0xff) ^ 0x10;
	}
	return CONTINUE;
}

INLINE int chain_mangle_prerouting(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c1_mangle_PREROUTING(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* mangle/OUTPUT */
INLINE int c2_mangle_OUTPUT(struct __sk_buff *skb, struct pkt *p)
{
	/* line 14 */
	if (p->proto == 0x6 && p->has_ports && (p->dport >= 0x1f40 && p->dport <= 0x1f4a)) {
		p->mark = (p->mark & ~0xffffffff) ^ 0x20;
	}
	return CONTINUE;
}

INLINE int chain_mangle_output(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c2_mangle_OUTPUT(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* nat/svc */
INLINE int c3_nat_svc(struct __sk_buff *skb, struct pkt *p)
{
	u32 drawn;
	/* line 30 */
	if (p->daddr == ADDRESS(0xfd00009600000000, 0xa) && p->proto == 0x11 && p->has_ports && p->dport == 0x35) {
		return ask_nat(p, ADDRESS(0xfd00000200000000, 0x5), ADDRESS(0xfd00000200000000, 0x5), 0x41d, 0x41d, BIND_ADDRESS | BIND_PORTS);
	}
	/* line 31 */
	if (p->daddr == ADDRESS(0xfd00009600000000, 0xa) && p->proto == 0x6 && p->has_ports && p->dport == 0x35) {
		drawn = bpf_get_prandom_u32() >> 1;
		if (drawn < 0x40000000) {
			return ask_nat(p, ADDRESS(0xfd00000200000000, 0x5), ADDRESS(0xfd00000200000000, 0x5), 0x41d, 0x41d, BIND_ADDRESS | BIND_PORTS);
		} else {
			return ask_nat(p, ADDRESS(0xfd00000200000000, 0x6), ADDRESS(0xfd00000200000000, 0x6), 0x41d, 0x41d, BIND_ADDRESS | BIND_PORTS);
		}
	}
	/* line 33 */
	if (p->daddr == ADDRESS(0xfd00009600000000, 0xb)) {
		return ask_nat(p, ADDRESS(0xfd00000200000000, 0x5), ADDRESS(0xfd00000200000000, 0x5), 0, 0, BIND_ADDRESS);
	}
	return CONTINUE;
}

/* nat/PREROUTING */
INLINE int c4_nat_PREROUTING(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 22 */
	if ((p->daddr & ADDRESS(0xffffffffffffffff, 0xffffffffffff0000)) == ADDRESS(0xfd00009600000000, 0x0)) {
		if ((verdict = c3_nat_svc(skb, p)))
			return verdict;
	}
	/* line 23 */
	if (p->proto == 0x6 && address_type(p->daddr, 0) == 0x2 && p->has_ports && p->dport == 0x7580) {
		return ask_nat(p, ADDRESS(0xfd00000200000000, 0x5), ADDRESS(0xfd00000200000000, 0x5), 0x50, 0x50, BIND_ADDRESS | BIND_PORTS);
	}
	/* line 24 */
	if ((p->in[0] == NAME(0x7765737400000000) && p->in[1] == NAME(0x0000000000000000)) && p->proto == 0x11 && p->has_ports && p->dport == 0x14e9) {
		return ask_nat(p, 0, 0, 0x35, 0x35, BIND_REDIRECT | BIND_PORTS);
	}
	return CONTINUE;
}

INLINE int chain_nat_prerouting(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c4_nat_PREROUTING(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* nat/INPUT */
INLINE int c5_nat_INPUT(struct __sk_buff *skb, struct pkt *p)
{
	return CONTINUE;
}

INLINE int chain_nat_input(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c5_nat_INPUT(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* nat/OUTPUT */
INLINE int c6_nat_OUTPUT(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 25 */
	if ((p->daddr & ADDRESS(0xffffffffffffffff, 0xffffffffffff0000)) == ADDRESS(0xfd00009600000000, 0x0)) {
		if ((verdict = c3_nat_svc(skb, p)))
			return verdict;
	}
	/* line 26 */
	if (p->daddr == ADDRESS(0xfd00009700000000, 0x1) && p->proto == 0x11) {
		return ask_nat(p, 0, 0, 0x35, 0x35, BIND_REDIRECT | BIND_PORTS);
	}
	return CONTINUE;
}

INLINE int chain_nat_output(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c6_nat_OUTPUT(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* nat/POSTROUTING */
INLINE int c7_nat_POSTROUTING(struct __sk_buff *skb, struct pkt *p)
{
	/* line 27 */
	if ((p->saddr & ADDRESS(0xffffffffffffffff, 0x0)) == ADDRESS(0xfd00000100000000, 0x0) && (p->out[0] == NAME(0x7570000000000000) && p->out[1] == NAME(0x0000000000000000)) && p->proto == 0x6) {
		return ask_nat(p, ADDRESS(0x20010db800000000, 0x10), ADDRESS(0x20010db800000000, 0x1f), 0, 0, BIND_ADDRESS);
	}
	/* line 28 */
	if ((p->saddr & ADDRESS(0xffffffffffffffff, 0x0)) == ADDRESS(0xfd00000100000000, 0x0) && (p->out[0] == NAME(0x7570000000000000) && p->out[1] == NAME(0x0000000000000000))) {
		return ask_nat(p, 0, 0, 0, 0, BIND_MASQUERADE);
	}
	/* line 29 */
	if ((p->saddr & ADDRESS(0xffffffffffffffff, 0x0)) == ADDRESS(0xfd00000200000000, 0x0) && (p->daddr & ADDRESS(0xffffffffffffffff, 0x0)) == ADDRESS(0xfd00000200000000, 0x0) && p->has_ct && (p->conn.status & 0x20) == 0x20) {
		return ask_nat(p, 0, 0, 0, 0, BIND_MASQUERADE | BIND_RANDOM);
	}
	return CONTINUE;
}

INLINE int chain_nat_postrouting(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c7_nat_POSTROUTING(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* filter/icmp */
INLINE int c8_filter_icmp(struct __sk_buff *skb, struct pkt *p)
{
	/* line 53 */
	if (p->has_icmp) {
		{
			struct key_0 key = { .k0 = p->icmp_type };
			struct entry *e = lookup_0.lookup(&key);
			if (e) {
				if (e->code == 1) {
					return ACCEPT;
				}
			}
		}
	}
	/* line 55 */
	if (p->ct_state == 0x40) {
		return DROP;
	}
	/* line 56 */
	if (p->has_icmp && p->icmp_type == 0x1 && p->has_icmp && p->icmp_code == 0x4) {
		return DROP;
	}
	/* line 57 */
	if ((p->saddr & ADDRESS(0xffffffffffffffff, 0x0)) == ADDRESS(0xfd00000200000000, 0x0) && p->has_icmp && p->icmp_type == 0x80) {
		p->reject = 1;
		return REJECT;
	}
	return CONTINUE;
}

/* filter/INPUT */
INLINE int c9_filter_INPUT(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 41 */
	if (p->ct_state == 0x1) {
		return DROP;
	}
	/* line 42 */
	if (p->proto == 0x3a) {
		if ((verdict = c8_filter_icmp(skb, p)))
			return verdict;
	}
	/* line 43 */
	if (p->has_ports) {
		{
			struct key_1 key = { .k0 = p->proto, .k1 = p->dport };
			struct entry *e = lookup_1.lookup(&key);
			if (e) {
				if (e->code == 1) {
					p->reject = 255;
					return REJECT;
				} else if (e->code == 2) {
					p->reject = 4;
					return REJECT;
				}
			}
		}
	}
	/* line 45 */
	if (p->proto == 0x11 && !(address_type(p->daddr, 0) == 0x2) && p->has_ports && p->dport == 0x43) {
		return DROP;
	}
	return CONTINUE;
}

INLINE int chain_filter_input(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c9_filter_INPUT(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* filter/refuse */
INLINE int c10_filter_refuse(struct __sk_buff *skb, struct pkt *p)
{
	/* line 58 */
	if (p->has_ports) {
		{
			struct key_2 key = { .k0 = p->proto, .k1 = p->dport };
			struct entry *e = lookup_2.lookup(&key);
			if (e) {
				if (e->code == 1) {
					p->reject = 0;
					return REJECT;
				} else if (e->code == 2) {
					p->reject = 1;
					return REJECT;
				} else if (e->code == 3) {
					p->reject = 3;
					return REJECT;
				} else if (e->code == 4) {
					p->reject = 5;
					return REJECT;
				} else if (e->code == 5) {
					p->reject = 6;
					return REJECT;
				}
			}
		}
	}
	/* line 63 */
	if (p->proto == 0x6) {
		p->reject = 255;
		return REJECT;
	}
	/* line 64 */
	p->reject = 4;
	return REJECT;
	return CONTINUE;
}

/* filter/FORWARD */
INLINE int c11_filter_FORWARD(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 46 */
	if ((p->ct_state == 0x2 || p->ct_state == 0x4)) {
		return ACCEPT;
	}
	/* line 47 */
	if (p->has_icmp && p->icmp_type == 0x80) {
		return ACCEPT;
	}
	/* line 48 */
	if (p->proto == 0x3a) {
		return DROP;
	}
	/* line 49 */
	if ((p->daddr & ADDRESS(0xffffffffffff0000, 0x0)) == ADDRESS(0x20010db80bad0000, 0x0)) {
		if ((verdict = c10_filter_refuse(skb, p)))
			return verdict;
	}
	/* line 50 */
	if (p->proto == 0x11 && (p->mark & 0xff) == 0x10 && p->has_ports && ((p->dport >= 0x3e8 && p->dport <= 0x3f2) || p->dport == 0x7d0)) {
		return DROP;
	}
	return CONTINUE;
}

INLINE int chain_filter_forward(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c11_filter_FORWARD(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* filter/OUTPUT */
INLINE int c12_filter_OUTPUT(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 51 */
	if ((p->daddr & ADDRESS(0xffffffffffff0000, 0x0)) == ADDRESS(0x20010db80bad0000, 0x0)) {
		if ((verdict = c10_filter_refuse(skb, p)))
			return verdict;
	}
	/* line 52 */
	if (p->mark == 0x20) {
		return ACCEPT;
	}
	return CONTINUE;
}

INLINE int chain_filter_output(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c12_filter_OUTPUT(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

#define HAS_NAT 1
#define chain_raw_output(skb, p) ACCEPT
#define chain_mangle_input(skb, p) ACCEPT
#define chain_mangle_forward(skb, p) ACCEPT
#define chain_mangle_postrouting(skb, p) ACCEPT
#define chain_security_input(skb, p) ACCEPT
#define chain_security_forward(skb, p) ACCEPT
#define chain_security_output(skb, p) ACCEPT

/* lookup_0: icmp.type
 *   0x87 : 1 (line 53)
 *   0x88 : 1 (line 54)
 */
/* lookup_1: l4.proto . l4.dport
 *   0x6 . 0x17 : 1 (line 43)
 *   0x11 . 0xa1 : 2 (line 44)
 */
/* lookup_2: l4.proto . l4.dport
 *   0x6 . 0x1 : 1 (line 58)
 *   0x6 . 0x2 : 2 (line 59)
 *   0x6 . 0x3 : 3 (line 60)
 *   0x6 . 0x5 : 4 (line 61)
 *   0x6 . 0x6 : 5 (line 62)
 */
