"""The checksums of transport protocols.

Ones' complement sums need no loop: 2^16 ≡ 1 (mod 65535), so the sum of all 16-bit words is the whole byte
string, read as one number, modulo 65535 (RFC 1071). For the same reason an address of 32 or 128 bits is added
to the pseudo-header's sum as one number.
"""

from __future__ import annotations

from typing import Final

__all__ = ["CRC_TABLE", "crc32c", "ones_sum"]


def ones_sum(data: bytes) -> int:
    """Return a number that is congruent to the sum of 16-bit words modulo 65535."""
    number = int.from_bytes(data, "big")
    return number << 8 if len(data) & 1 else number


def _crc_of(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


CRC_TABLE: Final = tuple(map(_crc_of, range(256)))
"""Castagnoli's CRC of every byte, bit-reversed (RFC 9260, appendix A)."""


def crc32c(data: bytes) -> int:
    """Return the Castagnoli CRC (RFC 9260, appendix A)."""
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ CRC_TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF
