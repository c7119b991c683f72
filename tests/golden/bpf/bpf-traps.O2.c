/* The chains, generated. */

#ifdef __BIG_ENDIAN__
#define NAME(x) (x##ULL)
#else
#define NAME(x) __builtin_bswap64(x##ULL)
#endif

/* ip.daddr . l4.proto . l4.dport */
struct key_0 { struct wire k0; u32 k1; u32 k2; };
BPF_F_TABLE("hash", struct key_0, struct entry, lookup_0, MAX_ENTRIES_OF_lookup_0, BPF_F_NO_PREALLOC);
/* ip.daddr . l4.proto . l4.dport */
struct key_1 { struct wire k0; u32 k1; u32 k2; };
BPF_F_TABLE("hash", struct key_1, struct entry, lookup_1, MAX_ENTRIES_OF_lookup_1, BPF_F_NO_PREALLOC);
/* l4.proto */
struct key_2 { u32 k0; };
BPF_F_TABLE("hash", struct key_2, struct entry, lookup_2, MAX_ENTRIES_OF_lookup_2, BPF_F_NO_PREALLOC);
/* l4.proto . l4.dport */
struct key_3 { u32 k0; u32 k1; };
BPF_F_TABLE("hash", struct key_3, struct entry, lookup_3, MAX_ENTRIES_OF_lookup_3, BPF_F_NO_PREALLOC);
/* l4.proto . l4.dport */
struct key_4 { u32 k0; u32 k1; };
BPF_F_TABLE("hash", struct key_4, struct entry, lookup_4, MAX_ENTRIES_OF_lookup_4, BPF_F_NO_PREALLOC);

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
	if (p->has_ports) {
		{
			struct key_0 key = { .k0 = to_wire(p->daddr), .k1 = p->proto, .k2 = p->dport };
			struct entry *e = lookup_0.lookup(&key);
			if (e) {
				if (e->code == 1) {
					return ask_nat(p, e->argument[0], e->argument[0], e->argument[1], e->argument[1], BIND_ADDRESS | BIND_PORTS);
				}
			}
		}
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
	if (p->has_ports) {
		{
			struct key_1 key = { .k0 = to_wire(p->daddr), .k1 = p->proto, .k2 = p->dport };
			struct entry *e = lookup_1.lookup(&key);
			if (e) {
				if (e->code == 1) {
					return ask_nat(p, e->argument[0], e->argument[0], e->argument[1], e->argument[1], BIND_ADDRESS | BIND_PORTS);
				}
			}
		}
	}
	/* line 31 */
	if (p->proto == 0x11 && p->has_ports && p->dport == 0x14b4) {
		return ask_nat(p, 0, 0, 0x35, 0x35, BIND_REDIRECT | BIND_PORTS);
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
	if ((p->out[0] == NAME(0x6574683000000000) && p->out[1] == NAME(0x0000000000000000)) && (p->saddr & 0xffff0000) == 0xaf40000) {
		{
			struct key_2 key = { .k0 = p->proto };
			struct entry *e = lookup_2.lookup(&key);
			if (e) {
				if (e->code == 1) {
					return ask_nat(p, e->argument[0], e->argument[0], 0, 0, BIND_ADDRESS);
				} else if (e->code == 2) {
					return ask_nat(p, e->argument[0], e->argument[0], e->argument[1], e->argument[2], BIND_ADDRESS | BIND_PORTS);
				}
			}
		}
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
	if (p->has_ports) {
		{
			struct key_3 key = { .k0 = p->proto, .k1 = p->dport };
			struct entry *e = lookup_3.lookup(&key);
			if (e) {
				if (e->code == 1) {
					p->reject = 255;
					return REJECT;
				} else if (e->code == 2) {
					p->reject = 3;
					return REJECT;
				}
			}
		}
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
	if (p->has_ports) {
		{
			struct key_4 key = { .k0 = p->proto, .k1 = p->dport };
			struct entry *e = lookup_4.lookup(&key);
			if (e) {
				if (e->code == 1) {
					p->reject = 10;
					return REJECT;
				} else if (e->code == 2) {
					p->reject = 255;
					return REJECT;
				}
			}
		}
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

/* lookup_0: ip.daddr . l4.proto . l4.dport
 *   0xa60001e . 0x6 . 0x50 : 1 0xaf40005 0x2382 (line 26)
 *   0xa60001f . 0x11 . 0x50 : 1 0xaf40005 0x2383 (line 27)
 */
/* lookup_1: ip.daddr . l4.proto . l4.dport
 *   0xa60001e . 0x6 . 0x50 : 1 0xaf40005 0x2384 (line 30)
 *   0x7f000001 . 0x6 . 0x7530 : 1 0xaf40003 0x1f40 (line 32)
 */
/* lookup_2: l4.proto
 *   0x6 : 2 0xac120002 0x7d0 0xbb8 (line 33)
 *   0x11 : 1 0xac120002 (line 34)
 */
/* lookup_3: l4.proto . l4.dport
 *   0x6 . 0x16 : 1 (line 11)
 *   0x11 . 0x35 : 2 (line 12)
 */
/* lookup_4: l4.proto . l4.dport
 *   0x6 . 0x2382 : 2 (line 15)
 *   0x11 . 0x2383 : 1 (line 16)
 */
