/* What a packet, a connection and a route are, and the maps that hold them. */

#define ETH_LENGTH 14
#define FOR_THIS_HOST 0 /* PACKET_HOST */
#define OTHERHOST 3 /* PACKET_OTHERHOST */
#define LOOPBACK_INDEX 1

/* What a chain returns. CONTINUE is also RETURN: back to the caller, or to the policy. */
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

/* One direction of a connection. For ICMP sport is the identifier, dport type << 8 | code. A key of maps:
 * the types of its members leave no hole. */
struct tuple {
	addr src;
	addr dst;
	tuple_port sport;
	tuple_port dport;
	tuple_proto proto;
};

/* What is known of one end of a TCP connection (struct ip_ct_tcp_state). */
struct side {
	u32 end;
	u32 maxend;
	u32 maxwin;
	u32 maxack;
	u8 scale, flags;
	u16 spare;
};

struct conn {
	struct tuple orig;
	struct tuple reply;
	u64 expires; /* ns of coarse_now() */
	u64 since;   /* when a UDP stream began */
	u32 status;
	u32 mark;
	struct side client, server;
	u32 last_seq, last_ack, last_end;
	u16 last_win;
	u8 last_index, last_dir; /* of the last segment, as tcp_index() */
	u8 last_scale, last_flags;
	u8 tcp_state, retransmissions;
	u8 simultaneous, challenge;
	u16 touched; /* when its entry of `replies` was last seen, as touch_time() */
};

/* What conntrack makes of a GRE header: too short a one, one without a key, one whose key tells its connection,
 * one of a version that NAT does not know, and one in which it finds no tuple. */
enum gre { GRE_SHORT = 0, GRE_PLAIN, GRE_KEYED, GRE_UNKNOWN, GRE_STRANGE };

/* Where a packet is between two programs: what takes it up again, and where. */
enum stage { AT_NOTHING = 0, AT_FORWARD, AT_LOOPBACK, AT_DELIVERY, AT_ANSWER, AT_NEIGHBOUR };

/* A packet under way. tc_index carries the number of its slot through the stack. */
struct pkt {
	addr saddr, daddr;
	u16 sport, dport;
	u8 proto, ttl, tos;
	u8 retries;            /* of the confirmation */
	u32 length;            /* of the IP packet */
	u16 l4, segment;       /* offset of the transport header in the frame; its length with all data */
	u8 has_ports, icmp_type, icmp_code, tcp_flags;
	u8 has_icmp, has_tcp, fragment, tcp_doff;
	u32 seq, ack, sack;
	u8 option_scale, option_flags, incoming, bad_sum;
	u16 icmp_id, check, udp_length, window;
	u16 gre_key;           /* of enhanced GRE (RFC 2637) */
	u8 gre, attached;      /* attached: it answers an UNTRACKED packet (nf_conntrack_attach) */
	u32 mark;
	u32 iif, oif, in_flags; /* in_flags: DEVICE_* of iif */
	u64 in[2], out[2];     /* interface names, 16 bytes each; zero where the hook has none */
	/* conntrack */
	struct tuple tuple;    /* as it arrived, the key of its direction */
	struct conn conn;      /* a copy; the map's own is written only at lookup and at confirmation */
	u32 ct_state;
	u8 has_ct, dir, fresh, related;
	/* the quoted packet of an ICMP error */
	u16 quoted, quoted_l4, quoted_segment; /* as l4 and segment */
	u8 quoted_proto, quoted_ports;
	/* an SCTP port that has changed; see sctp.h */
	u32 sctp_flipped;
	u16 sctp_behind, sctp_sum;
	/* what a NAT target asked for */
	u16 bind_flags;
	u16 search_from;       /* where the search for a port began */
	addr bind_low, bind_high;
	u16 bind_port_low, bind_port_high, bind_base;
	struct tuple wanted;
	u8 stage, reject, looped;
	u8 manip, next;        /* which side to bind and rewrite, and the program to go on with */
	u8 answer;             /* to a packet that was rejected, for the node itself */
	u8 reply_free;         /* no connection has the tuple of a new one's reply */
	u8 searches;           /* for a port, in vain */
	addr first_daddr;      /* of a packet made here, when it was first routed */
	addr via;              /* next hop and device of a packet made here that was routed again */
	u32 rerouted;
	u32 slot;
	/* as it left the last program: a slot is reused when its packet was lost */
	addr left_saddr, left_daddr;
	u16 left_id, ip_id;
};

/* bind_flags */
#define BIND_ADDRESS 1
#define BIND_PORTS 2
#define BIND_RANDOM 4
#define BIND_PERSISTENT 8
#define BIND_MASQUERADE 16
#define BIND_REDIRECT 32
#define BIND_SHIFT 64 /* the port moves as far into the range as it is above bind_base */

struct device {
	u64 name[2];
	addr address;     /* what REDIRECT binds; 0: none */
	addr near[REACHES]; /* and for what is sent to an address that reaches less far (IPv6) */
	u32 flags;
	u32 spare;
	u8 mac[8];        /* its hardware address, in six bytes */
};
#define DEVICE_ROUTE_LOCALNET 1
#define DEVICE_RP_STRICT 2
#define DEVICE_RP_LOOSE 4
#define DEVICE_ACCEPT_LOCAL 8 /* a source may be an address of the node */
#define DEVICE_BRIDGE 16 /* what comes in has passed br_netfilter */
#define DEVICE_DIRECT 32 /* the program may forward from and to it by itself; see forward.h */

struct prefix {
	u32 length;
	struct wire address; /* the trie compares from the first byte */
};

struct local {
	u32 type; /* RTN_* */
	u32 oif;
	u32 own; /* an interface's own address: the one that was given it last; otherwise 0 */
};

struct route {
	addr via;    /* 0: the destination is on the link */
	addr source; /* what packets made here use, by preference; in IPv6 the network's anycast address, 0: none */
	u32 oif;
	u32 spare[3];
};

struct source_prefix {
	u32 length; /* at least 32: the interface counts in full */
	u32 oif;
	struct wire address;
};

/* The sysctls net.netfilter.nf_conntrack_*; timeouts are seconds. */
struct settings {
	u32 tcp_loose;
	u32 tcp_liberal;
	u32 checksum;
	u32 tcp_max_retrans;
	u32 tcp_timeout[10]; /* by state */
	u32 tcp_retransmitted, tcp_unacknowledged;
	u32 udp, udp_stream;
	u32 icmp; /* of this family's */
	u32 gre, gre_stream;
	u32 generic;
	u32 sctp, sctp_established;
	u32 dccp, dccp_open;
};

struct bytes {
	u8 data[256];
};

/* CONNECTIONS: how many are remembered (BpfOutput.connections). */
BPF_TABLE("lru_hash", struct tuple, struct conn, conns, CONNECTIONS);
BPF_TABLE("lru_hash", struct tuple, struct tuple, replies, CONNECTIONS);
BPF_TABLE("lru_hash", struct tuple, struct tuple, sources, CONNECTIONS);
/* SLOTS: SLOTS_EACH for each processor (BpfOutput.processors). */
BPF_TABLE("array", u32, struct pkt, slots, SLOTS);
BPF_TABLE("percpu_array", u32, u32, slot_counter, 1);
BPF_TABLE("percpu_array", u32, struct bytes, scratch, 1);
BPF_TABLE("hash", u32, struct device, devices, 1024);
BPF_F_TABLE("lpm_trie", struct prefix, struct local, locals, 4096, BPF_F_NO_PREALLOC);
BPF_F_TABLE("lpm_trie", struct prefix, struct route, routes, 4096, BPF_F_NO_PREALLOC);
BPF_F_TABLE("lpm_trie", struct source_prefix, addr, primary, 4096, BPF_F_NO_PREALLOC);
BPF_TABLE("array", u32, struct settings, settings, 1);
BPF_TABLE("array", u32, u32, gate, 1); /* not 0: open */
BPF_TABLE("prog", u32, u32, programs, 16);
