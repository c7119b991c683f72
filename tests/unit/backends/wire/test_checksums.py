"""Checksums against the examples of their standards."""

from __future__ import annotations

from backends.wire.checksums import crc32c, ones_sum


def test_crc32c_of_sctp():
    # RFC 3720, B.4: 32 bytes of zero have the CRC aa 36 91 8a.
    assert crc32c(bytes(32)).to_bytes(4, "little") == bytes.fromhex("aa36918a")


def test_sum_of_rfc_1071():
    # RFC 1071, section 3: these words add up to ddf2, with the carries.
    assert ones_sum(bytes.fromhex("0001f203f4f5f6f7")) % 0xFFFF == 0xDDF2


def test_an_odd_byte_is_the_high_half_of_a_word():
    assert ones_sum(b"\x01\x02\x03") % 0xFFFF == (0x0102 + 0x0300) % 0xFFFF
