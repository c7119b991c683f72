/* A packet on its path, and the numbers that are stored with it and with its connection. */

#define ETH_LENGTH 14
#define SECOND 1000000000ULL /* ns */
#define FOR_THIS_HOST 0 /* PACKET_HOST */
#define TO_ALL 1 /* PACKET_BROADCAST */
#define TO_GROUP 2 /* PACKET_MULTICAST */
#define OTHERHOST 3 /* PACKET_OTHERHOST */
#define LOOPED_BACK 5 /* PACKET_LOOPBACK */
#define LOOPBACK_INDEX 1

/* The result of a chain. CONTINUE is also the result of RETURN: the caller or the policy continues. */
enum verdict { CONTINUE = 0, ACCEPT, DROP, BIND, REJECT };
#define REJECT_WITH_RESET 255 /* in place of an ICMP code */

/* The states of -m conntrack, as ConnectionState numbers them. */
enum { CT_INVALID = 1, CT_ESTABLISHED = 2, CT_RELATED = 4, CT_NEW = 8, CT_UNTRACKED = 64 };

/* The status bits of an entry (enum ip_conntrack_status). */
enum {
	ST_SEEN_REPLY = 1 << 1,
	ST_ASSURED = 1 << 2,
	ST_CONFIRMED = 1 << 3,
	ST_SRC_NAT = 1 << 4,
	ST_DST_NAT = 1 << 5,
	ST_SRC_NAT_DONE = 1 << 7,
	ST_DST_NAT_DONE = 1 << 8,
};

/* Whose socket a packet has: its sender's; an ICMP error, that of the kernel; the RST of a REJECT has none. */
enum { OWNER_SENDER = 0, OWNER_KERNEL, OWNER_NOBODY };

/* A fragment with the transport header, and one without it. */
enum { FIRST_FRAGMENT = 1, LATER_FRAGMENT };

/* Kinds of GRE headers in conntrack: too short; without a key; with a key, which is part of the tuple; of a
 * version that NAT does not know; without a tuple. */
enum gre { GRE_SHORT = 0, GRE_PLAIN, GRE_KEYED, GRE_UNKNOWN, GRE_STRANGE };

/* Where a packet is while no program has it: the place at which a program takes it up again. */
enum stage { AT_NOTHING = 0, AT_FORWARD, AT_LOOPBACK, AT_DELIVERY, AT_ANSWER, AT_NEIGHBOUR };

/* A packet on its path. tc_index carries the number of its slot through the stack. */
struct pkt {
	addr saddr, daddr;
	u16 sport, dport;
	u8 proto, ttl, tos;
	u8 retries;            /* of the confirmation */
	u32 length;            /* of the IP packet */
	u16 l4, segment;       /* offset of the transport header in the frame; length of that header and its data */
	u8 has_ports, icmp_type, icmp_code, tcp_flags;
	u8 has_icmp, has_tcp, fragment, tcp_doff;
	u32 seq, ack, sack;
	u8 option_scale, option_flags, incoming, bad_sum;
	u16 icmp_id, check, udp_length, window;
	u16 gre_key;           /* of enhanced GRE (RFC 2637) */
	u8 gre, attached;      /* attached: it answers an UNTRACKED packet (nf_conntrack_attach) */
	u32 mark, priority;    /* priority: only set on the way through lo */
	u64 ether_saddr;       /* of the frame that it came in, if has_ether */
	u8 has_ether, type;    /* type: PACKET_* */
	u8 regarded;           /* a multicast frame that counts as one to this machine (cluster.h) */
	u32 spi;               /* of the IPsec header of protocol spi_of, which is 0 without one */
	u8 spi_of;
	u8 has_ah, ah_length;  /* of the first AH header */
	u16 ah_reserved, ah_at; /* ah_at: its offset in the frame, only set over IPv6 */
	u32 ah_spi;
	u8 has_mobility, mobility_next, mobility_type; /* of a Mobility Header of IPv6 */
	u8 has_dccp, dccp_type, has_dccp_options;
	u64 dccp_options[4];   /* a bit for each kind */
	u32 clock;             /* when it came: seconds since 1970 */
	u8 has_options;        /* of TCP: a bit in `options` for each kind, and the first MSS and its offset in the frame, or 0 */
	u16 mss, mss_at;
	u64 options[4], stripped[4];
	u8 has_hop, hop_length, has_destination, destination_length; /* options of IPv6 */
	u16 hop_at, destination_at; /* their offsets in the frame */
	u8 has_routing, routing_type, routing_left, routing_length; /* of the first routing header of IPv6 */
	u8 routing_size, routing[40]; /* its first bytes, and how many of them the packet has: 0, 8, 24 or 40 */
	u16 routing_at;        /* its offset in the frame */
	u16 fragment_at, fragment_word; /* of the fragment header of IPv6: its offset in the frame, or 0; its second word */
	u8 fragment_reserved;
	u32 fragment_id;
	u32 iif, oif, in_flags; /* in_flags: DEVICE_* of iif */
	u64 in[2], out[2];     /* interface names, 16 bytes each; zero where the hook has none */
	/* conntrack */
	struct tuple tuple;    /* the packet's tuple as it arrived */
	struct conn conn;      /* a copy; the entry in the map is written only at lookup and at confirmation */
	u32 ct_state;
	u8 has_ct, dir, fresh, related;
	/* the quoted packet of an ICMP error */
	u16 quoted, quoted_l4, quoted_segment; /* as l4 and segment */
	u8 quoted_proto, quoted_ports;
	/* an SCTP port that has changed; see sctp.h */
	u32 sctp_flipped;
	u16 sctp_behind, sctp_sum;
	/* the verification of its checksum */
	u32 sctp_crc;
	u16 sctp_at;
	/* the request of a NAT target */
	u16 bind_flags;
	u16 search_from;       /* where the search for a port began */
	addr bind_low, bind_high;
	u16 bind_port_low, bind_port_high, bind_base;
	struct tuple wanted;
	u32 kept, end, own;    /* of a list of connections that is being cleaned (connlimit.h) */
	u8 stage, reject, looped;
	u8 manip, next;        /* the side to bind and rewrite, and the program that follows */
	u8 owner;              /* OWNER_* */
	u8 answer;             /* the packet is the answer to a rejected packet of the node itself */
	u8 reply_free;         /* no connection has the reply tuple of this new connection */
	u8 searches;           /* the number of searches for a port without success */
	addr first_daddr;      /* the destination of a packet made here when it was first routed */
	addr via;              /* next hop and device of a packet made here that was routed again */
	u32 rerouted;
	u32 slot;
	u32 hidden;            /* see unknown() */
	/* fields when it left the last program; the slot of a lost packet is reused, and these differ then */
	addr left_saddr, left_daddr;
	u16 left_id, ip_id;
};

/* Whether the packet has `length` bytes at an offset of the frame, which may have padding behind it. */
INLINE int has_bytes(struct pkt *p, u32 offset, u32 length) { return offset + length <= ETH_LENGTH + p->length; }

/* bind_flags */
#define BIND_ADDRESS 1
#define BIND_PORTS 2
#define BIND_RANDOM 4
#define BIND_PERSISTENT 8
#define BIND_MASQUERADE 16
#define BIND_REDIRECT 32
#define BIND_SHIFT 64 /* the new port is as far into the range as the old one is above bind_base */

/* Return the value, of which the verifier then knows nothing. It follows a path again for each value that it knows and
 * that a later branch depends on, so the paths of a long function multiply. */
INLINE u32 unknown(struct pkt *p, u32 value)
{
	*(volatile u32 *)&p->hidden = value;
	return *(volatile u32 *)&p->hidden;
}
