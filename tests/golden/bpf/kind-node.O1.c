/* The chains, generated. */

#ifdef __BIG_ENDIAN__
#define NAME(x) (x##ULL)
#else
#define NAME(x) __builtin_bswap64(x##ULL)
#endif

/* ip.daddr . l4.proto . l4.dport */
struct key_0 { struct wire k0; u32 k1; u32 k2; };
BPF_F_TABLE("hash", struct key_0, struct entry, lookup_0, MAX_ENTRIES_OF_lookup_0, BPF_F_NO_PREALLOC);
/* l4.proto . l4.dport */
struct key_1 { u32 k0; u32 k1; };
BPF_F_TABLE("hash", struct key_1, struct entry, lookup_1, MAX_ENTRIES_OF_lookup_1, BPF_F_NO_PREALLOC);
/* l4.proto . l4.sport */
struct key_2 { u32 k0; u32 k1; };
BPF_F_TABLE("hash", struct key_2, struct entry, lookup_2, MAX_ENTRIES_OF_lookup_2, BPF_F_NO_PREALLOC);

/* nat/KUBE-SEP-ZXMNUKOKXUTL2MK2 */
INLINE int c0_nat_KUBE_SEP_ZXMNUKOKXUTL2MK2(struct __sk_buff *skb, struct pkt *p)
{
	/* line 96 */
	if (p->saddr == 0xaf40003) {
		p->mark = (p->mark & ~0x4000) ^ 0x4000;
	}
	/* line 97 */
	if (p->proto == 0x6) {
		return ask_nat(p, 0xaf40003, 0xaf40003, 0x35, 0x35, BIND_ADDRESS | BIND_PORTS);
	}
	return CONTINUE;
}

/* nat/KUBE-SEP-SF3LG62VAE5ALYDV */
INLINE int c1_nat_KUBE_SEP_SF3LG62VAE5ALYDV(struct __sk_buff *skb, struct pkt *p)
{
	/* line 90 */
	if (p->saddr == 0xaf40004) {
		p->mark = (p->mark & ~0x4000) ^ 0x4000;
	}
	/* line 91 */
	if (p->proto == 0x6) {
		return ask_nat(p, 0xaf40004, 0xaf40004, 0x35, 0x35, BIND_ADDRESS | BIND_PORTS);
	}
	return CONTINUE;
}

/* nat/KUBE-SVC-ERIFXISQEP7F7OF4 */
INLINE int c2_nat_KUBE_SVC_ERIFXISQEP7F7OF4(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	u32 drawn;
	/* line 103 */
	if (!((p->saddr & 0xffff0000) == 0xaf40000) && p->daddr == 0xa60000a && p->proto == 0x6 && p->has_ports && p->dport == 0x35) {
		p->mark = (p->mark & ~0x4000) ^ 0x4000;
	}
	/* line 104 */
	drawn = bpf_get_prandom_u32() >> 1;
	if (drawn < 0x40000000) {
		if ((verdict = c0_nat_KUBE_SEP_ZXMNUKOKXUTL2MK2(skb, p)))
			return verdict;
	} else {
		if ((verdict = c1_nat_KUBE_SEP_SF3LG62VAE5ALYDV(skb, p)))
			return verdict;
	}
	return CONTINUE;
}

/* nat/KUBE-SEP-ZP3FB6NMPNCO4VBJ */
INLINE int c3_nat_KUBE_SEP_ZP3FB6NMPNCO4VBJ(struct __sk_buff *skb, struct pkt *p)
{
	/* line 94 */
	if (p->saddr == 0xaf40003) {
		p->mark = (p->mark & ~0x4000) ^ 0x4000;
	}
	/* line 95 */
	if (p->proto == 0x6) {
		return ask_nat(p, 0xaf40003, 0xaf40003, 0x23c1, 0x23c1, BIND_ADDRESS | BIND_PORTS);
	}
	return CONTINUE;
}

/* nat/KUBE-SEP-PUHFDAMRBZWCPADU */
INLINE int c4_nat_KUBE_SEP_PUHFDAMRBZWCPADU(struct __sk_buff *skb, struct pkt *p)
{
	/* line 86 */
	if (p->saddr == 0xaf40004) {
		p->mark = (p->mark & ~0x4000) ^ 0x4000;
	}
	/* line 87 */
	if (p->proto == 0x6) {
		return ask_nat(p, 0xaf40004, 0xaf40004, 0x23c1, 0x23c1, BIND_ADDRESS | BIND_PORTS);
	}
	return CONTINUE;
}

/* nat/KUBE-SVC-JD5MR3NA4I4DYORP */
INLINE int c5_nat_KUBE_SVC_JD5MR3NA4I4DYORP(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	u32 drawn;
	/* line 106 */
	if (!((p->saddr & 0xffff0000) == 0xaf40000) && p->daddr == 0xa60000a && p->proto == 0x6 && p->has_ports && p->dport == 0x23c1) {
		p->mark = (p->mark & ~0x4000) ^ 0x4000;
	}
	/* line 107 */
	drawn = bpf_get_prandom_u32() >> 1;
	if (drawn < 0x40000000) {
		if ((verdict = c3_nat_KUBE_SEP_ZP3FB6NMPNCO4VBJ(skb, p)))
			return verdict;
	} else {
		if ((verdict = c4_nat_KUBE_SEP_PUHFDAMRBZWCPADU(skb, p)))
			return verdict;
	}
	return CONTINUE;
}

/* nat/KUBE-SEP-QKX4QX54UKWK6JIY */
INLINE int c6_nat_KUBE_SEP_QKX4QX54UKWK6JIY(struct __sk_buff *skb, struct pkt *p)
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
INLINE int c7_nat_KUBE_SVC_NPX46M4PTMTKRN6Y(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 109 */
	if (!((p->saddr & 0xffff0000) == 0xaf40000) && p->daddr == 0xa600001 && p->proto == 0x6 && p->has_ports && p->dport == 0x1bb) {
		p->mark = (p->mark & ~0x4000) ^ 0x4000;
	}
	/* line 110 */
	if ((verdict = c6_nat_KUBE_SEP_QKX4QX54UKWK6JIY(skb, p)))
		return verdict;
	return CONTINUE;
}

/* nat/KUBE-SEP-6E7XQMQ4RAYOWTTM */
INLINE int c8_nat_KUBE_SEP_6E7XQMQ4RAYOWTTM(struct __sk_buff *skb, struct pkt *p)
{
	/* line 84 */
	if (p->saddr == 0xaf40003) {
		p->mark = (p->mark & ~0x4000) ^ 0x4000;
	}
	/* line 85 */
	if (p->proto == 0x11) {
		return ask_nat(p, 0xaf40003, 0xaf40003, 0x35, 0x35, BIND_ADDRESS | BIND_PORTS);
	}
	return CONTINUE;
}

/* nat/KUBE-SEP-WXWGHGKZOCNYRYI7 */
INLINE int c9_nat_KUBE_SEP_WXWGHGKZOCNYRYI7(struct __sk_buff *skb, struct pkt *p)
{
	/* line 92 */
	if (p->saddr == 0xaf40004) {
		p->mark = (p->mark & ~0x4000) ^ 0x4000;
	}
	/* line 93 */
	if (p->proto == 0x11) {
		return ask_nat(p, 0xaf40004, 0xaf40004, 0x35, 0x35, BIND_ADDRESS | BIND_PORTS);
	}
	return CONTINUE;
}

/* nat/KUBE-SVC-TCOU7JCQXEZGVUNU */
INLINE int c10_nat_KUBE_SVC_TCOU7JCQXEZGVUNU(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	u32 drawn;
	/* line 111 */
	if (!((p->saddr & 0xffff0000) == 0xaf40000) && p->daddr == 0xa60000a && p->proto == 0x11 && p->has_ports && p->dport == 0x35) {
		p->mark = (p->mark & ~0x4000) ^ 0x4000;
	}
	/* line 112 */
	drawn = bpf_get_prandom_u32() >> 1;
	if (drawn < 0x40000000) {
		if ((verdict = c8_nat_KUBE_SEP_6E7XQMQ4RAYOWTTM(skb, p)))
			return verdict;
	} else {
		if ((verdict = c9_nat_KUBE_SEP_WXWGHGKZOCNYRYI7(skb, p)))
			return verdict;
	}
	return CONTINUE;
}

/* nat/KUBE-SERVICES */
INLINE int c11_nat_KUBE_SERVICES(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 98 */
	if (p->has_ports) {
		{
			struct key_0 key = { .k0 = to_wire(p->daddr), .k1 = p->proto, .k2 = p->dport };
			struct entry *e = lookup_0.lookup(&key);
			if (e) {
				if (e->code == 1) {
					if ((verdict = c10_nat_KUBE_SVC_TCOU7JCQXEZGVUNU(skb, p)))
						return verdict;
				} else if (e->code == 2) {
					if ((verdict = c2_nat_KUBE_SVC_ERIFXISQEP7F7OF4(skb, p)))
						return verdict;
				} else if (e->code == 3) {
					if ((verdict = c5_nat_KUBE_SVC_JD5MR3NA4I4DYORP(skb, p)))
						return verdict;
				} else if (e->code == 4) {
					if ((verdict = c7_nat_KUBE_SVC_NPX46M4PTMTKRN6Y(skb, p)))
						return verdict;
				}
			}
		}
	}
	return CONTINUE;
}

/* nat/DOCKER_OUTPUT */
INLINE int c12_nat_DOCKER_OUTPUT(struct __sk_buff *skb, struct pkt *p)
{
	/* line 73 */
	if (p->daddr == 0xac120001 && p->has_ports) {
		{
			struct key_1 key = { .k0 = p->proto, .k1 = p->dport };
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

/* nat/PREROUTING */
INLINE int c13_nat_PREROUTING(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 66 */
	if ((verdict = c11_nat_KUBE_SERVICES(skb, p)))
		return verdict;
	/* line 67 */
	if (p->daddr == 0xac120001) {
		if ((verdict = c12_nat_DOCKER_OUTPUT(skb, p)))
			return verdict;
	}
	return CONTINUE;
}

INLINE int chain_nat_prerouting(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c13_nat_PREROUTING(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* nat/INPUT */
INLINE int c14_nat_INPUT(struct __sk_buff *skb, struct pkt *p)
{
	return CONTINUE;
}

INLINE int chain_nat_input(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c14_nat_INPUT(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* nat/OUTPUT */
INLINE int c15_nat_OUTPUT(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 68 */
	if ((verdict = c11_nat_KUBE_SERVICES(skb, p)))
		return verdict;
	/* line 69 */
	if (p->daddr == 0xac120001) {
		if ((verdict = c12_nat_DOCKER_OUTPUT(skb, p)))
			return verdict;
	}
	return CONTINUE;
}

INLINE int chain_nat_output(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c15_nat_OUTPUT(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* nat/KUBE-POSTROUTING */
INLINE int c16_nat_KUBE_POSTROUTING(struct __sk_buff *skb, struct pkt *p)
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
INLINE int c17_nat_DOCKER_POSTROUTING(struct __sk_buff *skb, struct pkt *p)
{
	/* line 75 */
	if (p->saddr == 0x7f00000b && p->has_ports) {
		{
			struct key_2 key = { .k0 = p->proto, .k1 = p->sport };
			struct entry *e = lookup_2.lookup(&key);
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
INLINE int c18_nat_KIND_MASQ_AGENT(struct __sk_buff *skb, struct pkt *p)
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
INLINE int c19_nat_POSTROUTING(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 70 */
	if ((verdict = c16_nat_KUBE_POSTROUTING(skb, p)))
		return verdict;
	/* line 71 */
	if (p->daddr == 0xac120001) {
		if ((verdict = c17_nat_DOCKER_POSTROUTING(skb, p)))
			return verdict;
	}
	/* line 72 */
	if (!(address_type(p->daddr, 0) == 0x2)) {
		if ((verdict = c18_nat_KIND_MASQ_AGENT(skb, p)))
			return verdict;
	}
	return CONTINUE;
}

INLINE int chain_nat_postrouting(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c19_nat_POSTROUTING(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* filter/KUBE-FIREWALL */
INLINE int c20_filter_KUBE_FIREWALL(struct __sk_buff *skb, struct pkt *p)
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
INLINE int c21_filter_INPUT(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 26 */
	if ((verdict = c20_filter_KUBE_FIREWALL(skb, p)))
		return verdict;
	return CONTINUE;
}

INLINE int chain_filter_input(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c21_filter_INPUT(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* filter/KUBE-FORWARD */
INLINE int c22_filter_KUBE_FORWARD(struct __sk_buff *skb, struct pkt *p)
{
	/* line 36 */
	if (p->ct_state == 0x1) {
		return DROP;
	}
	/* line 37 */
	if ((p->mark & 0x4000) == 0x4000) {
		return ACCEPT;
	}
	/* line 38 */
	if ((p->ct_state == 0x2 || p->ct_state == 0x4)) {
		return ACCEPT;
	}
	return CONTINUE;
}

/* filter/FORWARD */
INLINE int c23_filter_FORWARD(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 28 */
	if ((verdict = c22_filter_KUBE_FORWARD(skb, p)))
		return verdict;
	return CONTINUE;
}

INLINE int chain_filter_forward(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c23_filter_FORWARD(skb, p);
	return verdict == CONTINUE ? ACCEPT : verdict;
}

/* filter/OUTPUT */
INLINE int c24_filter_OUTPUT(struct __sk_buff *skb, struct pkt *p)
{
	int verdict;
	/* line 33 */
	if ((verdict = c20_filter_KUBE_FIREWALL(skb, p)))
		return verdict;
	return CONTINUE;
}

INLINE int chain_filter_output(struct __sk_buff *skb, struct pkt *p)
{
	int verdict = c24_filter_OUTPUT(skb, p);
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

/* lookup_0: ip.daddr . l4.proto . l4.dport
 *   0xa60000a . 0x11 . 0x35 : 1 (line 98)
 *   0xa60000a . 0x6 . 0x35 : 2 (line 99)
 *   0xa60000a . 0x6 . 0x23c1 : 3 (line 100)
 *   0xa600001 . 0x6 . 0x1bb : 4 (line 101)
 */
/* lookup_1: l4.proto . l4.dport
 *   0x6 . 0x35 : 1 0x7f00000b 0xae2f (line 73)
 *   0x11 . 0x35 : 1 0x7f00000b 0xe62a (line 74)
 */
/* lookup_2: l4.proto . l4.sport
 *   0x6 . 0xae2f : 1 0xac120001 0x35 (line 75)
 *   0x11 . 0xe62a : 1 0xac120001 0x35 (line 76)
 */
