/* SNPT and DNPT: one prefix of IPv6 addresses for another (ip6t_NPT.c).
 *
 * One word of an address makes up for the change of the others, so checksums stay as they are: also those that are wrong
 * afterwards, because the address did not have the old prefix.
 */

/* ip6t_npt_map_pfx. A prefix of up to 48 bits is compensated in the word after it, a longer one in the first word of the
 * other half that is not 0xffff. Returns -1 if there is none. */
INLINE int map_prefix(addr *address, addr new, addr mask, u16 adjustment, int is_short)
{
	addr mapped = (*address & ~mask) | (new & mask);
	u64 high = mapped >> 64, low = mapped, half = is_short ? high : low;
	u32 shift = 0, sum;

	if (!is_short) {
		shift = (u16)(low >> 48) != 0xffff ? 48 : (u16)(low >> 32) != 0xffff ? 32 : (u16)(low >> 16) != 0xffff ? 16 : 0;
		if (low == ~0ULL)
			return -1;
	}
	sum = (u16)(half >> shift) + adjustment;
	sum = (sum & 0xffff) + (sum >> 16);
	if (sum == 0xffff)
		sum = 0;
	half = (half & ~(0xffffULL << shift)) | (u64)sum << shift;
	*address = is_short ? (addr)half << 64 | low : (addr)high << 64 | half;
	return 0;
}

/* Translate the source (which = 0) or the destination (1), and in an ICMP error the address of the other side of the
 * quoted packet, if it has the old prefix (ip6t_snpt_tg, ip6t_dnpt_tg). Returns 1 to drop the packet. */
INLINE int translate_prefix(struct __sk_buff *skb, struct pkt *p, int which, addr old, addr old_mask, addr new,
			    addr mask, u16 adjustment, int is_short)
{
	u32 quoted = ETH_LENGTH + HEADER_LENGTH + 8;
	u8 bounced[HEADER_LENGTH];
	addr address = which ? p->daddr : p->saddr;
	struct wire wire;

	if (map_prefix(&address, new, mask, adjustment, is_short))
		return 1;
	wire = to_wire(address);
	bpf_skb_store_bytes(skb, ETH_LENGTH + (which ? DADDR_AT : SADDR_AT), &wire, sizeof(wire), 0);
	if (which)
		p->daddr = address;
	else
		p->saddr = address;
	/* icmpv6_bounced_ipv6hdr */
	if (!p->has_icmp || p->l4 + 8 != quoted || !p->icmp_type || p->icmp_type > 4 ||
	    bpf_skb_load_bytes(skb, quoted, bounced, sizeof(bounced)))
		return 0;
	address = read_address(bounced + (which ? SADDR_AT : DADDR_AT));
	if ((address & old_mask) != old || map_prefix(&address, new, mask, adjustment, is_short))
		return 0;
	wire = to_wire(address);
	bpf_skb_store_bytes(skb, quoted + (which ? SADDR_AT : DADDR_AT), &wire, sizeof(wire), 0);
	return 0;
}
