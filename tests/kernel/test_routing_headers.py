"""``-m srh`` and ``-m rt --rt-type 0`` beside their translations: no corpus has such headers."""

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

UDP, ROUTING, NONE = 17, 43, 59
DATAGRAM = "00050006000c0000" + "00000000"
ZEROS, ONE, TWO, OTHER = ("::", "fd00::1", "fd00::2", "fd00:0:0:1::1")
WORDS = {
    ZEROS: "0" * 32,
    ONE: "fd00" + "0" * 27 + "1",
    TWO: "fd00" + "0" * 27 + "2",
    OTHER: "fd00000000000001" + "0" * 15 + "1",
}

MATCHES = (
    *("srh", "srh --srh-next-hdr 17", "srh ! --srh-next-hdr 17", "srh --srh-next-hdr 0"),
    *(
        f"srh {no}--srh-{name}-{how} {number}"
        for name, number in (("hdr-len", 4), ("segs-left", 1), ("last-entry", 1))
        for how in ("eq", "gt", "lt")
        for no in ("", "! ")
    ),
    *("srh --srh-hdr-len-gt 255", "srh --srh-hdr-len-lt 0", "srh ! --srh-segs-left-gt 255"),
    *("srh --srh-hdr-len-gt 2 --srh-hdr-len-lt 4", "srh --srh-segs-left-eq 0 ! --srh-segs-left-gt 1"),
    *("srh --srh-tag 0", "srh ! --srh-tag 0", "srh --srh-tag 1", "srh --srh-tag 256", "srh --srh-tag 258"),
    *(f"srh --srh-lsid {ONE}", f"srh ! --srh-lsid {ONE}", "srh --srh-lsid fd00::/64", "srh --srh-lsid ::/0"),
    *("srh ! --srh-lsid fd00::/64", "srh --srh-lsid fd00::1"),
    *(f"srh --srh-segs-left-eq 1 --srh-nsid {ONE}", f"srh --srh-segs-left-eq 2 ! --srh-nsid {TWO}"),
    *(f"srh --srh-segs-left-eq 0 --srh-psid {TWO}", "srh --srh-segs-left-eq 0 ! --srh-psid fd00::/64"),
    *("rt --rt-type 0 --rt-0-res", "rt --rt-type 0 --rt-segsleft 1 --rt-0-res"),
    *(f"rt --rt-type 0 --rt-0-addrs {ONE}", f"rt --rt-type 0 --rt-0-addrs {ONE},{TWO}"),
    *(f"rt --rt-type 0 --rt-len 24 --rt-0-res --rt-0-addrs {ONE}", "rt --rt-type 0 --rt-0-addrs ::"),
)
UNMATCHED = {"plain", "more left than entries", "254 entries", "type 2"}
NEVER = {
    *("srh --srh-next-hdr 0", "srh --srh-hdr-len-gt 255", "srh --srh-hdr-len-lt 0"),
    "srh --srh-hdr-len-gt 2 --srh-hdr-len-lt 4",  # both compare with 4
}


def header(
    addresses: tuple[str, ...], *, kind: int = 4, left: int = 0, last: int = 0, tag: int = 0, flags: int = 0
) -> str:
    """Return a routing header before UDP; in type 0, the last three numbers are reserved bytes."""
    fixed = bytes((UDP, 2 * len(addresses), kind, left, last, flags)) + tag.to_bytes(2, "big")
    return fixed.hex() + "".join(WORDS[address] for address in addresses)


PACKETS = {
    "plain": (UDP, ""),
    "no address": (ROUTING, header(())),
    "one address": (ROUTING, header((ONE,))),
    "the other address": (ROUTING, header((TWO,))),
    "another network": (ROUTING, header((OTHER,))),
    "two": (ROUTING, header((ONE, TWO), left=1, last=1)),
    "two, all passed": (ROUTING, header((ONE, TWO), last=1)),
    "two, the other way": (ROUTING, header((TWO, ONE), left=1, last=1)),
    "two, the other way, all passed": (ROUTING, header((TWO, ONE), last=1)),
    "two of another network, all passed": (ROUTING, header((ONE, OTHER), last=1)),
    "three": (ROUTING, header((ONE, TWO, OTHER), left=2, last=2)),
    "three, and a tag": (ROUTING, header((TWO, ONE, OTHER), left=1, last=2, tag=1)),
    "another tag": (ROUTING, header((ONE,), tag=0x0100)),
    "a tag of two bytes": (ROUTING, header((ONE,), tag=0x0201)),
    "a tag of the same two bytes": (ROUTING, header((ONE,), tag=0x0102)),
    "more left than entries": (ROUTING, header((ONE, TWO), left=2, last=1)),
    "three, and another network": (ROUTING, header((ONE, OTHER, TWO), left=2, last=2)),
    "another header behind it": (ROUTING, f"{NONE:02x}" + header((ONE,))[2:]),
    "255 left": (ROUTING, header((ONE,), left=255, last=255)),
    "254 entries": (ROUTING, header((ONE,), left=255, last=254)),
    "type 0": (ROUTING, header((ONE,), kind=0, left=1)),
    "type 0 with two": (ROUTING, header((ONE, TWO), kind=0)),
    "type 0 with an address of zeros": (ROUTING, header((ZEROS,), kind=0)),
    "type 0 without addresses": (ROUTING, header((), kind=0)),
    "first reserved byte": (ROUTING, header((ONE,), kind=0, left=1, last=1)),
    "second reserved byte": (ROUTING, header((ONE,), kind=0, flags=1)),
    "last reserved byte": (ROUTING, header((ONE,), kind=0, tag=1)),
    "type 2": (ROUTING, header((ONE,), kind=2)),
    "after options": (0, f"{ROUTING:02x}00010400000000" + header((ONE,), tag=0x0201)),
}


def whole(first: int, body: str) -> bytes:
    """Return a packet from ::1 to ::1; its first header after that of IPv6 is ``first``."""
    own, data = (1).to_bytes(16, "big"), bytes.fromhex(body + DATAGRAM)
    return struct.pack("!IHBB", 6 << 28, len(data), first, 64) + own + own + data


@pytest.mark.parametrize("level", [*(pytest.param(level, marks=pytest.mark.slow) for level in (0, 1)), 2])
def test_the_kernel_reads_the_same_headers(level: int) -> None:
    packets = [whole(*packet) for packet in PACKETS.values()]
    states = counts_of_both([f"-m {words}" for words in MATCHES], packets, Family.IP6, level=level)
    before = [0] * len(MATCHES)
    for name, (legacy, ours) in zip(PACKETS, states, strict=True):
        different = {words: (a, b) for words, a, b in zip(MATCHES, legacy, ours, strict=True) if a != b}
        assert not different, name
        assert (legacy == before) is (name in UNMATCHED), name
        before = legacy
    counts = dict(zip(MATCHES, states[-1][0], strict=True))
    assert {words for words, count in counts.items() if not count} == NEVER


def test_the_tc_program_reads_the_same_headers() -> None:
    require(TcEbpfBackend())
    packets = [whole(*packet) for packet in PACKETS.values()]
    states = matched_in_both([f"-m {words}" for words in MATCHES], packets, Family.IP6)
    met = set()
    for name, (legacy, ours) in zip(PACKETS, states, strict=True):
        different = [words for words, a, b in zip(MATCHES, legacy, ours, strict=True) if a != b]
        assert not different, name
        met |= {words for words, holds in zip(MATCHES, legacy, strict=True) if holds}
    assert set(MATCHES) - met == NEVER
