/* Basic definitions of the runtime. All addresses, ports and identifiers are in host byte order; they are
 * converted only when a packet is rewritten.
 */
#include <uapi/linux/bpf.h>
#include <uapi/linux/pkt_cls.h>

#define INLINE static __always_inline

#define PROTO_TCP 6
#define PROTO_UDP 17
#define PROTO_DCCP 33
#define PROTO_GRE 47
#define PROTO_ESP 50
#define PROTO_AH 51
#define PROTO_IPCOMP 108
#define PROTO_SCTP 132
#define PROTO_MOBILITY 135
#define PROTO_UDPLITE 136

/* CLOCK_MONOTONIC in steps of a jiffy, which is also the resolution of conntrack's timeouts. */
INLINE u64 coarse_now(void) { return bpf_ktime_get_coarse_ns(); }

INLINE u16 swap16(u16 v) { return __builtin_bswap16(v); }
INLINE u32 swap32(u32 v) { return __builtin_bswap32(v); }
INLINE u32 read32(u8 *at) { return (u32)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3]; }

/* The checksum of which `sum` is the sum, before its bits are inverted. */
INLINE u16 fold(u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

INLINE void put32(u8 *at, u32 value)
{
	at[0] = value >> 24;
	at[1] = value >> 16;
	at[2] = value >> 8;
	at[3] = value;
}
