/* The port that an ipset looks up (ip_set_getport.c).
 *
 * -1: there is none, in a later fragment or a header that is cut off.
 */
INLINE int ipset_port(struct pkt *p, int src)
{
	if (FAMILY == 10 && p->fragment == LATER_FRAGMENT)
		return -1;
	if (p->proto == PROTO_TCP || p->proto == PROTO_UDP || p->proto == PROTO_SCTP ||
	    p->proto == PROTO_UDPLITE) {
		if (!p->has_ports)
			return -1;
		return src ? p->sport : p->dport;
	}
	if (p->has_icmp)
		return p->icmp_type << 8 | p->icmp_code;
	return p->proto == 1 || p->proto == 58 ? -1 : 0;
}
