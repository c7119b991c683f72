/* SCTP's checksum: the CRC of Castagnoli over the whole packet (RFC 9260, appendix A), bit-reversed.
 *
 * A port that changes flips bits of the CRC that depend on these bits and on how far the end of the
 * packet is, and on nothing else: CRCs are linear. So the packet is not read again, however long it is.
 */

#define CRC_POLYNOMIAL 0x82f63b78
#define CRC_ONE 0x80000000 /* the polynomial 1: the highest bit has the lowest power */

/* The value where the bit is set, else zero. A product, since clang 19 makes a branch of a select, and newer verifiers
 * go two paths where a mask is all ones or zero: either doubles the paths with each round of a loop. */
INLINE u32 crc_where(u32 bit, u32 value)
{
	asm volatile("" : "+r"(bit)); /* or clang makes a select of the product */
	return value * bit;
}

/* One bit of zeros behind what the CRC covers: times x. */
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

/* The change of the CRC when four bytes change by `flipped`; `behind` bytes follow them. */
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

/* A port of the SCTP packet at `l4`, `length` bytes long, has changed by `flipped`. */
INLINE void port_of_sctp(struct pkt *p, u16 l4, u16 length, int which, u16 flipped)
{
	p->sctp_flipped = which ? (u32)flipped << 16 : flipped;
	p->sctp_behind = length - 4;
	p->sctp_sum = l4 + 8;
}

/* Bring the checksum up to date after that. One of zero was left to hardware by another stack of this
 * machine (CHECKSUM_PARTIAL), and stays so. */
INLINE void set_sctp_checksum(struct __sk_buff *skb, struct pkt *p)
{
	u32 old = 0, new;

	if (bpf_skb_load_bytes(skb, p->sctp_sum, &old, 4) || !old)
		return;
	new = old ^ crc_change(p->sctp_flipped, p->sctp_behind);
	if (p->has_icmp)
		bpf_l4_csum_replace(skb, p->l4 + 2, old, new, 4); /* the error that quotes it */
	bpf_skb_store_bytes(skb, p->sctp_sum, &new, 4, 0);
}

/* Up to this many bytes, a checksum is verified; that of longer packets is taken as right. */
#define MOST_VERIFIED 4096
#define CRC_CHUNK 64

INLINE u32 crc_add(struct crc_table *t, u32 crc, u8 byte)
{
	u32 index = crc ^ byte;

	asm volatile("" : "+r"(index)); /* or clang masks first and mixes then, and 6.1's verifier sees no bound */
	return crc >> 8 ^ t->after[index & 255];
}

/* Whether the checksum is wrong (sctp_error). What makes no whole chunk comes first, so that the verifier
 * does not go through it behind each chunk. */
INLINE int bad_sctp_checksum(struct __sk_buff *skb, struct pkt *p)
{
	u32 zero = 0, crc = 0xffffffff, said = 0, at, left = p->segment % CRC_CHUNK;
	struct crc_table *t = crc_tables.lookup(&zero);
	struct bytes *b = scratch.lookup(&zero);

	if (!t || !b || p->segment < 12 || p->segment > MOST_VERIFIED ||
	    bpf_skb_load_bytes(skb, p->l4 + 8, &said, 4) || !said)
		return 0;
	for (u32 j = 0; j < CRC_CHUNK; j++) {
		u8 byte = 0;

		asm volatile("" : "+r"(j));
		if (j >= left)
			break;
		if (bpf_skb_load_bytes(skb, p->l4 + j, &byte, 1))
			return 0;
		crc = crc_add(t, crc, byte);
	}
	at = *(volatile u16 *)&p->segment % CRC_CHUNK; /* any value again, for the verifier */
	left = *(volatile u16 *)&p->segment / CRC_CHUNK;
	for (u32 i = 0; i < MOST_VERIFIED / CRC_CHUNK; i++) {
		asm volatile("" : "+r"(i));
		if (i >= left)
			break;
		if (bpf_skb_load_bytes(skb, p->l4 + at, b->data, CRC_CHUNK))
			return 0;
		for (u32 j = 0; j < CRC_CHUNK; j++) {
			asm volatile("" : "+r"(j));
			crc = crc_add(t, crc, b->data[j & (CRC_CHUNK - 1)]);
		}
		at += CRC_CHUNK;
	}
	/* That was with the checksum in its place, which stands for zero. */
	return ~(crc ^ crc_change(said, p->segment - 12)) != said;
}
