"""``-m u32`` and its translation beside each other, on packets that no corpus has.

These are fragments, headers of IPv4 with options, and packets without a payload.
"""

from __future__ import annotations

import os
import struct

import pytest

from backends.tc_ebpf import TcEbpfBackend
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.counted import counts_of_both
from tests.kernel.helpers.matchedtc import matched_in_both
from translate.ir import Family

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]

MATCHES = (
    *('"0>>24=0x45"', '"0>>24=0x46"', '"20=0:0xffffffff"', '"20=0x00050035"', '"6&0xff=17&&24>>16=12"'),
    *('"4&0x1fff=0&&0>>22&0x3c@0=0x00050035"', '"4&0x3fff=0&&0>>22&0x3c@0&0xffff=0x35"'),
    *('"4&0x1fff=0&&0>>22&0x3c@8=0:0xffffffff"', '"4&0x1fff=0&&0>>22&0x3c@9=0:0xffffffff"', '"4&0x1fff=1"'),
    *('"0>>22&0x3c=21:25"', '"0&0xffff=20:31,36"', '"4&0xffffffff=0x50000"', '"4<<16=0x20000000"'),
)
SENDER, OWN = b"\x7f\0\0\2", b"\x7f\0\0\1"
"""The stack answers with errors, which do not have this sender."""
DATAGRAM = struct.pack("!HHHH4s", 5, 53, 12, 0, b"data")


def whole(body: bytes, *, where: int = 0, options: bytes = b"", ident: int = 5, proto: int = 17) -> bytes:
    """Return a packet to 127.0.0.1."""
    size = 20 + len(options)
    head = struct.pack("!BBHHHBBH", 0x40 | size // 4, 0, size + len(body), ident, where, 64, proto, 0)
    return head + SENDER + OWN + options + body


PACKETS = (
    whole(DATAGRAM),
    whole(DATAGRAM, options=b"\1\1\1\0"),
    whole(DATAGRAM + b"ab", where=0x2000, options=b"\1\1\1\0"),
    whole(DATAGRAM, where=1),
    whole(DATAGRAM[:8], proto=99),
    whole(DATAGRAM[:2], proto=99),
    whole(b"", proto=99),
    whole(b"\0\5\0\x35\0", where=3, proto=99),
)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_kernel_reads_the_same_words(level: int) -> None:
    rules = [f"-s 127.0.0.2 -m u32 {no}--u32 {words}" for words in MATCHES for no in ("", "! ")]
    states = counts_of_both(rules, list(PACKETS), Family.IP, level=level)
    for packet, (legacy, ours) in zip(PACKETS, states, strict=True):
        assert ours == legacy, packet.hex()
    final = states[-1][0]
    assert not {words for words, count in zip(rules, final, strict=True) if count in (0, len(PACKETS))}
    assert all(a + b == len(PACKETS) for a, b in zip(final[::2], final[1::2], strict=True))


OFFSETS = (
    *('"0>>22&0x3c@4>>16@0>>8=0:0xff"', '"2&0xffff@0xfffffffc=0:0xffffffff"', '"0>>22&0x3c@4>>16=12"'),
    *('"0>>22&0x3c@0>>16@0=0:0xffffffff"', '"100=0:0xffffffff"', '"0@0xffffffff=0:0xffffffff"'),
)
"""Offsets that the packet gives, and beyond its end."""


@pytest.mark.parametrize("level", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_the_tc_program_reads_the_same_words(level: int) -> None:
    """It drops fragments before any rule."""
    require(TcEbpfBackend())
    rules = [f"-s 127.0.0.2 -m u32 {no}--u32 {w}" for w in (*MATCHES, *OFFSETS) for no in ("", "! ")]
    packets = [packet for packet in PACKETS if not packet[6] & 0x3F | packet[7]]
    states = matched_in_both(rules, packets, Family.IP, level=level)
    for packet, (legacy, ours) in zip(packets, states, strict=True):
        assert ours == legacy, packet.hex()
        assert all(a != b for a, b in zip(legacy[::2], legacy[1::2], strict=True))
