/* SCTP's checksum: the Castagnoli CRC of the whole packet (RFC 9260, appendix A), bit-reversed.
 *
 * CRCs are linear: when a port changes, the change of the CRC depends only on the flipped bits of the port and
 * on their distance from the end of the packet. The packet is therefore not read again, however long it is.
 */

#define CRC_POLYNOMIAL 0x82f63b78
#define CRC_ONE 0x80000000 /* the polynomial 1: the highest bit has the lowest power */

/* Return the value if the bit is set, else zero. It is a product, because clang 19 turns a select into a branch,
 * and newer verifiers follow two paths for a mask of all ones or zeros. Either would double the paths in each
 * round of a loop. */
INLINE u32 crc_where(u32 bit, u32 value)
{
	asm volatile("" : "+r"(bit)); /* otherwise clang turns the product into a select */
	return value * bit;
}

/* The CRC after one more zero bit, which is a multiplication by x. */
INLINE u32 crc_shift(u32 crc) { return (crc >> 1) ^ crc_where(crc & 1, CRC_POLYNOMIAL); }

/* The product of two polynomials. */
INLINE u32 crc_times(u32 a, u32 b)
{
	u32 product = 0;

	for (u32 i = 0; i < 32; i++) {
		asm volatile("" : "+r"(i));
		product ^= crc_where(a >> 31, b);
		a <<= 1;
		b = crc_shift(b);
	}
	return product;
}

/* The change of the CRC if the bits `flipped` of four bytes change, which are followed by `behind` bytes. */
INLINE u32 crc_change(u32 flipped, u16 behind)
{
	u32 crc = flipped, power = CRC_ONE >> 8;

	for (u32 i = 0; i < 32; i++) {
		asm volatile("" : "+r"(i));
		crc = crc_shift(crc);
	}
	for (u32 i = 0; i < 16; i++) {
		asm volatile("" : "+r"(i));
		crc = crc_times(CRC_ONE ^ crc_where(behind & 1, CRC_ONE ^ power), crc);
		power = crc_times(power, power);
		behind >>= 1;
	}
	return crc;
}

/* Record that bits of a port have changed, in the SCTP packet of `length` bytes at `l4`. */
INLINE void port_of_sctp(struct pkt *p, u16 l4, u16 length, int which, u16 flipped)
{
	p->sctp_flipped = which ? (u32)flipped << 16 : flipped;
	p->sctp_behind = length - 4;
	p->sctp_sum = l4 + 8;
}

/* Correct the checksum for the recorded change. A checksum of zero was left to the network card by another
 * stack of this machine (CHECKSUM_PARTIAL), and is not changed. */
INLINE void set_sctp_checksum(struct __sk_buff *skb, struct pkt *p)
{
	u32 old = 0, new;

	if (bpf_skb_load_bytes(skb, p->sctp_sum, &old, 4) || !old)
		return;
	new = old ^ crc_change(p->sctp_flipped, p->sctp_behind);
	if (p->has_icmp)
		bpf_l4_csum_replace(skb, p->l4 + 2, old, new, 4); /* the checksum of the error that quotes it */
	bpf_skb_store_bytes(skb, p->sctp_sum, &new, 4, 0);
}

/* The length in bytes up to which checksums are verified; those of longer packets are assumed to be correct. */
#define MOST_VERIFIED 4096
#define CRC_CHUNK 64
#define CHUNKS_AT_ONCE 16

enum { SUM_CORRECT = 0, SUM_WRONG, SUM_NOT_YET };

INLINE u32 crc_add(struct crc_table *t, u32 crc, u8 byte)
{
	u32 index = crc ^ byte;

	asm volatile("" : "+r"(index)); /* otherwise clang masks before it mixes, and Linux 6.1's verifier sees no bound */
	return crc >> 8 ^ t->after[index & 255];
}

/* Whether a packet has a chunk that is not empty (do_basic_checks of nf_conntrack_proto_sctp.c). */
INLINE int has_sctp_chunk(struct __sk_buff *skb, struct pkt *p)
{
	u8 chunk[4] = {};

	return p->segment >= 16 && !bpf_skb_load_bytes(skb, p->l4 + 12, chunk, 4) && (chunk[2] | chunk[3]);
}

/* Begin to verify the checksum of a packet. */
INLINE void begin_sctp_checksum(struct pkt *p)
{
	p->sctp_crc = 0xffffffff;
	p->sctp_at = 0;
}

/* Whether the checksum is wrong (sctp_error). A call reads CHUNKS_AT_ONCE chunks; SUM_NOT_YET asks the caller to call
 * again, as a new program, because the verifier follows each round of a loop. */
INLINE int bad_sctp_checksum(struct __sk_buff *skb, struct pkt *p)
{
	u32 zero = 0, crc = p->sctp_crc, stored = 0, at = p->sctp_at, left;
	struct crc_table *t = crc_tables.lookup(&zero);
	struct bytes *b = scratch.lookup(&zero);

	if (!t || !b || p->segment < 12 || p->segment > MOST_VERIFIED ||
	    bpf_skb_load_bytes(skb, p->l4 + 8, &stored, 4) || !stored)
		return 0;
	for (u32 i = 0; i < CHUNKS_AT_ONCE; i++) {
		asm volatile("" : "+r"(i));
		if (at + CRC_CHUNK > p->segment)
			break;
		if (bpf_skb_load_bytes(skb, p->l4 + at, b->data, CRC_CHUNK))
			return 0;
#pragma unroll
		for (u32 j = 0; j < CRC_CHUNK; j++)
			crc = crc_add(t, crc, b->data[j]);
		at += CRC_CHUNK;
	}
	if (at + CRC_CHUNK <= p->segment) {
		p->sctp_crc = crc;
		p->sctp_at = at;
		return SUM_NOT_YET;
	}
	at = unknown(p, at);
	left = p->segment % CRC_CHUNK;
	for (u32 j = 0; j < CRC_CHUNK; j++) {
		u8 byte = 0;

		asm volatile("" : "+r"(j));
		if (j >= left)
			break;
		if (bpf_skb_load_bytes(skb, p->l4 + at + j, &byte, 1))
			return 0;
		crc = crc_add(t, crc, byte);
	}
	/* The CRC was computed with the checksum in its field, which counts as zero. */
	return ~(crc ^ crc_change(stored, p->segment - 12)) != stored;
}
