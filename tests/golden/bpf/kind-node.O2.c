/* The chains, generated. */

#ifdef __BIG_ENDIAN__
#define NAME(x) (x##ULL)
#else
#define NAME(x) __builtin_bswap64(x##ULL)
#endif

/* ip.saddr . ip.daddr . l4.proto . l4.dport */
struct key_0 { struct wire k0; struct wire k1; u32 k2; u32 k3; };
BPF_F_TABLE("hash", struct key_0, struct entry, lookup_0, MAX_ENTRIES_OF_lookup_0, BPF_F_NO_PREALLOC);
/* ip.daddr . l4.proto . l4.dport */
struct key_1 { struct wire k0; u32 k1; u32 k2; };
BPF_F_TABLE("hash", struct key_1, struct entry, lookup_1, MAX_ENTRIES_OF_lookup_1, BPF_F_NO_PREALLOC);
/* ip.saddr . ip.daddr . l4.proto . l4.dport */
struct key_2 { struct wire k0; struct wire k1; u32 k2; u32 k3; };
BPF_F_TABLE("hash", struct key_2, struct entry, lookup_2, MAX_ENTRIES_OF_lookup_2, BPF_F_NO_PREALLOC);
/* ip.daddr . l4.proto . l4.dport */
struct key_3 { struct wire k0; u32 k1; u32 k2; };
BPF_F_TABLE("hash", struct key_3, struct entry, lookup_3, MAX_ENTRIES_OF_lookup_3, BPF_F_NO_PREALLOC);
/* ip.daddr . l4.proto . l4.dport */
struct key_4 { struct wire k0; u32 k1; u32 k2; };
BPF_F_TABLE("hash", struct key_4, struct entry, lookup_4, MAX_ENTRIES_OF_lookup_4, BPF_F_NO_PREALLOC);
/* l4.proto . l4.dport */
struct key_5 { u32 k0; u32 k1; };
BPF_F_TABLE("hash", struct key_5, struct entry, lookup_5, MAX_ENTRIES_OF_lookup_5, BPF_F_NO_PREALLOC);
/* l4.proto . l4.sport */
struct key_6 { u32 k0; u32 k1; };
BPF_F_TABLE("hash", struct key_6, struct entry, lookup_6, MAX_ENTRIES_OF_lookup_6, BPF_F_NO_PREALLOC);
/* ct.state */
struct key_7 { u32 k0; };
BPF_F_TABLE("hash", struct key_7, struct entry, lookup_7, MAX_ENTRIES_OF_lookup_7, BPF_F_NO_PREALLOC);

/* nat/KUBE-SERVICES endpoint 1 eb18 */
INLINE int c0_nat_KUBE_SERVICES_endpoint_1_eb18(struct __sk_buff *skb, struct pkt *p)
{
	/* line 84 */
	if (p->has_ports) {
		{
			struct key_0 key = { .k0 = to_wire(p->saddr), .k1 = to_wire(p->daddr), .k2 = p->proto, .k3 = p->dport };
			struct entry *e = lookup_0.lookup(&key);
			if (e) {
				if (e->code == 1) {
					p->mark = (p->mark & ~e->argument[0]) ^ e->argument[1];
				}
			}
		}
	}
	/* line 85 */
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
	return CONTINUE;
}

/* nat/KUBE-SERVICES endpoint 2 eb18 */
INLINE int c1_nat_KUBE_SERVICES_endpoint_2_eb18(struct __sk_buff *skb, struct pkt *p)
{
	/* line 92 */
	if (p->has_ports) {
		{
			struct key_2 key = { .k0 = to_wire(p->saddr), .k1 = to_wire(p->daddr), .k2 = p->proto, .k3 = p->dport };
			struct entry *e = lookup_2.lookup(&key);
			if (e) {
				if (e->code == 1) {
					p->mark = (p->mark & ~e->argument[0]) ^ e->argument[1];
				}
			}
		}
	}
	/* line 93 */
	if (p->has_ports) {
		{
			struct key_3 key = { .k0 = to_wire(p->daddr), .k1 = p->proto, .k2 = p->dport };
			struct entry *e = lookup_3.lookup(&key);
			if (e) {
				if (e->code == 1) {
					return ask_nat(p, e->argument[0], e->argument[0], e->argument[1], e->argument[1], BIND_ADDRESS | BIND_PORTS);
				}
			}
		}
	}
	return CONTINUE;
}

/* nat/KUBE-SERVICES 2 endpoints 70ab */
INLINE int c2_nat_KUBE_SERVICES_2_endpoints_70ab(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	u32 drawn;
	/* line 111 */
	if (!((p->saddr & 0xffff0000) == 0xaf40000)) {
		p->mark = (p->mark & ~0x4000) ^ 0x4000;
	}
	/* line 112 */
	drawn = bpf_get_prandom_u32() >> 1;
	if (drawn < 0x40000000) {
		if ((verdict = c0_nat_KUBE_SERVICES_endpoint_1_eb18(skb, p)))
			return verdict;
	} else {
		if ((verdict = c1_nat_KUBE_SERVICES_endpoint_2_eb18(skb, p)))
			return verdict;
	}
	return CONTINUE;
}

/* nat/KUBE-SEP-QKX4QX54UKWK6JIY */
INLINE int c3_nat_KUBE_SEP_QKX4QX54UKWK6JIY(struct __sk_buff *skb, struct pkt *p)
{
	/* line 88 */
	if (p->saddr == 0xac120003) {
		p->mark = (p->mark & ~0x4000) ^ 0x4000;
	}
	/* line 89 */
	if (p->proto == 0x6) {
		return ask_nat(p, 0xac120003, 0xac120003, 0x192b, 0x192b, BIND_ADDRESS | BIND_PORTS);
	}
	return CONTINUE;
}

/* nat/KUBE-SVC-NPX46M4PTMTKRN6Y */
INLINE int c4_nat_KUBE_SVC_NPX46M4PTMTKRN6Y(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 109 */
	if (!((p->saddr & 0xffff0000) == 0xaf40000) && p->daddr == 0xa600001 && p->proto == 0x6 && p->has_ports && p->dport == 0x1bb) {
		p->mark = (p->mark & ~0x4000) ^ 0x4000;
	}
	/* line 110 */
	if ((verdict = c3_nat_KUBE_SEP_QKX4QX54UKWK6JIY(skb, p)))
		return verdict;
	return CONTINUE;
}

/* nat/KUBE-SERVICES */
INLINE int c5_nat_KUBE_SERVICES(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 98 */
	if (p->has_ports) {
		{
			struct key_4 key = { .k0 = to_wire(p->daddr), .k1 = p->proto, .k2 = p->dport };
			struct entry *e = lookup_4.lookup(&key);
			if (e) {
				if (e->code == 1) {
					if ((verdict = c2_nat_KUBE_SERVICES_2_endpoints_70ab(skb, p)))
						return verdict;
				} else if (e->code == 2) {
					if ((verdict = c4_nat_KUBE_SVC_NPX46M4PTMTKRN6Y(skb, p)))
						return verdict;
				}
			}
		}
	}
	return CONTINUE;
}

/* nat/DOCKER_OUTPUT */
INLINE int c6_nat_DOCKER_OUTPUT(struct __sk_buff *skb, struct pkt *p)
{
	/* line 73 */
	if (p->daddr == 0xac120001 && p->has_ports) {
		{
			struct key_5 key = { .k0 = p->proto, .k1 = p->dport };
			struct entry *e = lookup_5.lookup(&key);
			if (e) {
				if (e->code == 1) {
					return ask_nat(p, e->argument[0], e->argument[0], e->argument[1], e->argument[1], BIND_ADDRESS | BIND_PORTS);
				}
			}
		}
	}
	return CONTINUE;
}

/* nat/PREROUTING */
INLINE int c7_nat_PREROUTING(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 66 */
	if ((verdict = c5_nat_KUBE_SERVICES(skb, p)))
		return verdict;
	/* line 67 */
	if (p->daddr == 0xac120001) {
		if ((verdict = c6_nat_DOCKER_OUTPUT(skb, p)))
			return verdict;
	}
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
	/* line 68 */
	if ((verdict = c5_nat_KUBE_SERVICES(skb, p)))
		return verdict;
	/* line 69 */
	if (p->daddr == 0xac120001) {
		if ((verdict = c6_nat_DOCKER_OUTPUT(skb, p)))
			return verdict;
	}
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
	/* line 81 */
	if (!((p->mark & 0x4000) == 0x4000)) {
		return CONTINUE;
	}
	/* line 82 */
	p->mark = (p->mark & ~0x0) ^ 0x4000;
	/* line 83 */
	return ask_nat(p, 0, 0, 0, 0, BIND_MASQUERADE | BIND_RANDOM);
	return CONTINUE;
}

/* nat/DOCKER_POSTROUTING */
INLINE int c11_nat_DOCKER_POSTROUTING(struct __sk_buff *skb, struct pkt *p)
{
	/* line 75 */
	if (p->saddr == 0x7f00000b && p->has_ports) {
		{
			struct key_6 key = { .k0 = p->proto, .k1 = p->sport };
			struct entry *e = lookup_6.lookup(&key);
			if (e) {
				if (e->code == 1) {
					return ask_nat(p, e->argument[0], e->argument[0], e->argument[1], e->argument[1], BIND_ADDRESS | BIND_PORTS);
				}
			}
		}
	}
	return CONTINUE;
}

/* nat/KIND-MASQ-AGENT */
INLINE int c12_nat_KIND_MASQ_AGENT(struct __sk_buff *skb, struct pkt *p)
{
	/* line 77 */
	if ((p->daddr & 0xffff0000) == 0xaf40000) {
		return CONTINUE;
	}
	/* line 78 */
	return ask_nat(p, 0, 0, 0, 0, BIND_MASQUERADE);
	return CONTINUE;
}

/* nat/POSTROUTING */
INLINE int c13_nat_POSTROUTING(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 70 */
	if ((verdict = c10_nat_KUBE_POSTROUTING(skb, p)))
		return verdict;
	/* line 71 */
	if (p->daddr == 0xac120001) {
		if ((verdict = c11_nat_DOCKER_POSTROUTING(skb, p)))
			return verdict;
	}
	/* line 72 */
	if (!(address_type(p->daddr, 0) == 0x2)) {
		if ((verdict = c12_nat_KIND_MASQ_AGENT(skb, p)))
			return verdict;
	}
	return CONTINUE;
}

INLINE int chain_nat_postrouting(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c13_nat_POSTROUTING(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* filter/KUBE-FIREWALL */
INLINE int c14_filter_KUBE_FIREWALL(struct __sk_buff *skb, struct pkt *p)
{
	/* line 34 */
	if (!((p->saddr & 0xff000000) == 0x7f000000) && (p->daddr & 0xff000000) == 0x7f000000 && !(((p->ct_state == 0x2 || p->ct_state == 0x4)) || (p->has_ct && (p->conn.status & 0x20) == 0x20))) {
		return DROP;
	}
	/* line 35 */
	if ((p->mark & 0x8000) == 0x8000) {
		return DROP;
	}
	return CONTINUE;
}

/* filter/INPUT */
INLINE int c15_filter_INPUT(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 26 */
	if ((verdict = c14_filter_KUBE_FIREWALL(skb, p)))
		return verdict;
	return CONTINUE;
}

INLINE int chain_filter_input(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c15_filter_INPUT(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* filter/KUBE-FORWARD */
INLINE int c16_filter_KUBE_FORWARD(struct __sk_buff *skb, struct pkt *p)
{
	/* line 36 */
	{
		struct key_7 key = { .k0 = p->ct_state };
		struct entry *e = lookup_7.lookup(&key);
		if (e) {
			if (e->code == 1) {
				return ACCEPT;
			} else if (e->code == 2) {
				return DROP;
			}
		}
	}
	/* line 37 */
	if ((p->mark & 0x4000) == 0x4000) {
		return ACCEPT;
	}
	return CONTINUE;
}

/* filter/FORWARD */
INLINE int c17_filter_FORWARD(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 28 */
	if ((verdict = c16_filter_KUBE_FORWARD(skb, p)))
		return verdict;
	return CONTINUE;
}

INLINE int chain_filter_forward(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c17_filter_FORWARD(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* filter/OUTPUT */
INLINE int c18_filter_OUTPUT(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 33 */
	if ((verdict = c14_filter_KUBE_FIREWALL(skb, p)))
		return verdict;
	return CONTINUE;
}

INLINE int chain_filter_output(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c18_filter_OUTPUT(skb, p);
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

/* lookup_0: ip.saddr . ip.daddr . l4.proto . l4.dport
 *   0xaf40003 . 0xa60000a . 0x11 . 0x35 : 1 0x4000 0x4000 (line 84)
 *   0xaf40003 . 0xa60000a . 0x6 . 0x35 : 1 0x4000 0x4000 (line 96)
 *   0xaf40003 . 0xa60000a . 0x6 . 0x23c1 : 1 0x4000 0x4000 (line 94)
 */
/* lookup_1: ip.daddr . l4.proto . l4.dport
 *   0xa60000a . 0x11 . 0x35 : 1 0xaf40003 0x35 (line 85)
 *   0xa60000a . 0x6 . 0x35 : 1 0xaf40003 0x35 (line 97)
 *   0xa60000a . 0x6 . 0x23c1 : 1 0xaf40003 0x23c1 (line 95)
 */
/* lookup_2: ip.saddr . ip.daddr . l4.proto . l4.dport
 *   0xaf40004 . 0xa60000a . 0x11 . 0x35 : 1 0x4000 0x4000 (line 92)
 *   0xaf40004 . 0xa60000a . 0x6 . 0x35 : 1 0x4000 0x4000 (line 90)
 *   0xaf40004 . 0xa60000a . 0x6 . 0x23c1 : 1 0x4000 0x4000 (line 86)
 */
/* lookup_3: ip.daddr . l4.proto . l4.dport
 *   0xa60000a . 0x11 . 0x35 : 1 0xaf40004 0x35 (line 93)
 *   0xa60000a . 0x6 . 0x35 : 1 0xaf40004 0x35 (line 91)
 *   0xa60000a . 0x6 . 0x23c1 : 1 0xaf40004 0x23c1 (line 87)
 */
/* lookup_4: ip.daddr . l4.proto . l4.dport
 *   0xa60000a . 0x11 . 0x35 : 1 (line 98)
 *   0xa60000a . 0x6 . 0x35 : 1 (line 99)
 *   0xa60000a . 0x6 . 0x23c1 : 1 (line 100)
 *   0xa600001 . 0x6 . 0x1bb : 2 (line 101)
 */
/* lookup_5: l4.proto . l4.dport
 *   0x6 . 0x35 : 1 0x7f00000b 0xae2f (line 73)
 *   0x11 . 0x35 : 1 0x7f00000b 0xe62a (line 74)
 */
/* lookup_6: l4.proto . l4.sport
 *   0x6 . 0xae2f : 1 0xac120001 0x35 (line 75)
 *   0x11 . 0xe62a : 1 0xac120001 0x35 (line 76)
 */
/* lookup_7: ct.state
 *   0x1 : 2 (line 36)
 *   0x2 : 1 (line 38)
 *   0x4 : 1 (line 38)
 */
