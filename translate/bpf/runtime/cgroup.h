/* -m cgroup (xt_cgroup): the socket that has sent a packet, and its cgroups. */

#define SOCKET_WAITS 6 /* TCP_TIME_WAIT */
#define SOCKET_BEGINS 12 /* TCP_NEW_SYN_RECV: the socket of an answer to a SYN */

/* Whether the packet has a full socket (sk_fullsock). */
INLINE int has_socket(struct __sk_buff *skb, struct pkt *p)
{
	struct bpf_sock *sk = skb->sk;
	u32 state;

	if (p->owner)
		return p->owner == OWNER_KERNEL;
	if (!sk)
		return 0;
	state = sk->state;
	return state != SOCKET_WAITS && state != SOCKET_BEGINS;
}

/* The class of the socket (sock_cgroup_classid). */
INLINE u32 socket_class(struct __sk_buff *skb, struct pkt *p)
{
	return p->owner ? 0 : bpf_skb_cgroup_classid(skb);
}

/* Whether the socket belongs to a cgroup of this depth, or to one below it (cgroup_is_descendant). */
INLINE int is_below_cgroup(struct __sk_buff *skb, struct pkt *p, u32 number, u32 depth)
{
	u64 *id = cgroups.lookup(&number);

	return id && !p->owner && bpf_skb_ancestor_cgroup_id(skb, depth) == *id;
}
