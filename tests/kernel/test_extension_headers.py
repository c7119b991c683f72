"""Matches of IPv6's extension headers and their translations, on packets that no corpus has.

These are fragments, AH, and packets without a payload. No rule uses conntrack, which reassembles fragments.
"""

from __future__ import annotations

import os
import random
import struct

import pytest

from backends.tc_ebpf import TcEbpfBackend
from tests.kernel.helpers.acceptance import is_later_than_1_8_9
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.counted import counts_of_both
from tests.kernel.helpers.matchedtc import matched_in_both
from translate.ir import Family

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]

MATCHES = (
    *("frag", "frag --fragid 5", "frag ! --fragid 5:7", "frag --fragid 0:4294967294"),
    *("frag --fragres", "frag --fragfirst", "frag --fragmore", "frag --fraglast", "frag --fraglen 99"),
    *("frag ! --fragid 6 --fragres --fragfirst --fragmore", "hbh", "hbh --hbh-len 8", "hbh ! --hbh-len 8"),
    *("dst", "dst ! --dst-len 16", "dst --dst-len 16", "rt", "rt ! --rt-type 0"),
    *(
        f"ipv6header {no}--header {name} --soft"
        for name in ("frag", "hop,dst", "esp", "none", "prot", "frag,prot")
        for no in ("", "! ")
    ),
)
UNTIL_1_8_9 = "frag --fragid 7:5"  # later releases refuse a range that ends before it begins
HOP, ROUTING, FRAGMENT, ESP, AH, NONE, DESTINATION, UDP = 0, 43, 44, 50, 51, 59, 60, 17
DATAGRAM = "00050006000c0000" + "00000000"


def options(following: int, units: int = 0) -> str:
    size = 8 * (units + 1)
    return bytes((following, units, 0x1E if units else 1, size - 4)).ljust(size, b"\0").hex()


def routing(following: int, kind: int = 0) -> str:
    return f"{following:02x}00{kind:02x}0000000000"


def fragment(following: int, identification: int, where: int, reserved: int = 0) -> str:
    return f"{following:02x}{reserved:02x}{where:04x}{identification:08x}"


PACKETS = {
    "plain": (UDP, DATAGRAM),
    "atomic fragment": (FRAGMENT, fragment(UDP, 5, 0) + DATAGRAM),
    "first fragment": (FRAGMENT, fragment(UDP, 6, 1) + DATAGRAM + "00000000"),
    "later fragment": (FRAGMENT, fragment(UDP, 7, 0x101) + DATAGRAM + "00000000"),
    "last fragment": (FRAGMENT, fragment(UDP, 8, 0x100) + DATAGRAM),
    "reserved byte": (FRAGMENT, fragment(UDP, 4, 0, 1) + DATAGRAM),
    "reserved bits": (FRAGMENT, fragment(UDP, 4, 4) + DATAGRAM),
    "greatest identification": (FRAGMENT, fragment(UDP, 0xFFFFFFFF, 0) + DATAGRAM),
    "hop and destination": (HOP, options(DESTINATION) + options(UDP, 1) + DATAGRAM),
    "two destinations": (
        DESTINATION,
        options(ROUTING, 1) + routing(DESTINATION, 4) + options(UDP) + DATAGRAM,
    ),
    "fragment after hop": (HOP, options(FRAGMENT, 2) + fragment(UDP, 5, 1) + DATAGRAM + "00000000"),
    "destination in a fragment": (FRAGMENT, fragment(DESTINATION, 9, 0) + options(UDP) + DATAGRAM),
    "esp": (ESP, "00000001" + "00000000" * 3),
    "esp after options": (DESTINATION, options(ESP) + "00000001" + "00000000" * 3),
    "ah": (AH, f"{UDP:02x}04000000000001" + "00000000" * 4 + DATAGRAM),
    "nothing": (NONE, ""),
    "nothing after options": (HOP, options(NONE)),
    "routing header": (ROUTING, routing(UDP) + DATAGRAM),
}


def whole(first: int, body: str) -> bytes:
    """Return a packet from ::1 to ::1; its first header after that of IPv6 is ``first``."""
    own, data = (1).to_bytes(16, "big"), bytes.fromhex(body)
    return struct.pack("!IHBB", 6 << 28, len(data), first, 64) + own + own + data


@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_kernel_finds_the_same_headers(level: int) -> None:
    packets = [whole(*packet) for packet in PACKETS.values()]
    matches = MATCHES if is_later_than_1_8_9() else (*MATCHES, UNTIL_1_8_9)
    rules = [f"-m {words}" for words in matches]
    before = [0] * len(matches)
    hit: set[str] = set()
    states = counts_of_both(rules, packets, Family.IP6, level=level)
    for packet, (legacy, ours) in zip(PACKETS, states, strict=True):
        assert ours == legacy, packet
        counted = zip(matches, before, legacy, strict=True)
        hit |= {words for words, earlier, later in counted if later > earlier}
        before = legacy
    assert set(matches) - hit == {UNTIL_1_8_9} & set(matches)
    assert len(PACKETS) not in before, "a match that holds for every packet"


LATER = {
    "options": (FRAGMENT, fragment(DESTINATION, 10, 0x101) + options(UDP) + DATAGRAM),
    "routing": (FRAGMENT, fragment(ROUTING, 11, 0x100) + routing(UDP) + DATAGRAM),
}
"""Later fragments whose data looks like the header that the fragment header names."""


def test_ipv6header_reads_data_of_later_fragments() -> None:
    """``ipv6header_mt6`` looks for headers behind any fragment header; ``ipv6_find_hdr`` for nft does not."""
    packets = [whole(*packet) for packet in LATER.values()]
    counts = counts_of_both([f"-m {words}" for words in MATCHES], packets, Family.IP6, level=2)[-1]
    different = {words for words, legacy, ours in zip(MATCHES, *counts, strict=True) if legacy != ours}
    assert different
    assert all(words.startswith("ipv6header") for words in different)
    assert "ipv6header --header prot --soft" in different


HOP_MATCHES = (
    *("", "--hbh-opts 1", "--hbh-opts 1:4", "--hbh-opts 1:3", "--hbh-opts 1:255", "--hbh-opts 0,0"),
    *("--hbh-opts 5:2", "--hbh-opts 5:2,1:0", "--hbh-opts 5:2,1", "--hbh-opts 5:2,0,0", "--hbh-opts 0,1:3"),
    *("--hbh-opts 30:12", "--hbh-len 8 --hbh-opts 1:4", "! --hbh-len 8 --hbh-opts 30", "--hbh-opts 1:4,9"),
    *("--hbh-opts 1:4,17:0", "--hbh-opts 0,0,0,0,0,0", "--hbh-opts 0,0,0,0,0,0,0", "--hbh-opts 30:12,9"),
)
HOP_OPTIONS = (
    *("010400000000", "0502abcd0100", "0502abcd0000", "000000000000", "000103000000", "010300000000"),
    *("1e0c" + "00" * 12, "010c" + "00" * 12, "01040000000009" + "00" * 7, "c20400010000", "050200000102"),
    *("0007" + "00" * 4, "070400000000", "01ff00000000", "00000000000001" + "00" * 7),
)
"""Hop-by-hop options without the first two bytes of their header."""
HOP_NEVER = {"--hbh-opts 1:4,17:0", "--hbh-opts 0,0,0,0,0,0,0", "--hbh-opts 30:12,9"}


def hop_packets() -> list[bytes]:
    made = [whole(UDP, DATAGRAM), whole(NONE, "")]
    for listed in HOP_OPTIONS:
        units = (len(listed) // 2 + 2) // 8 - 1
        made += [
            whole(HOP, f"{UDP:02x}{units:02x}{listed}{DATAGRAM}"),
            whole(HOP, f"{NONE:02x}{units:02x}{listed}"),
        ]
    # what is behind the header looks like an option
    made.append(whole(HOP, f"{NONE:02x}00010400000000" + "0900" * 4))
    return made


@pytest.mark.parametrize("level", [0, 2])
def test_the_kernel_reads_the_same_options(level: int) -> None:
    rules = [f"-m hbh {words}".rstrip() for words in HOP_MATCHES]
    packets = hop_packets()
    states = counts_of_both(rules, packets, Family.IP6, level=level)
    for packet, (legacy, ours) in zip(packets, states, strict=True):
        different = {words: (a, b) for words, a, b in zip(rules, legacy, ours, strict=True) if a != b}
        assert different == {}, packet.hex()
    counts = dict(zip(HOP_MATCHES, states[-1][0], strict=True))
    assert {words for words, count in counts.items() if not count} == HOP_NEVER


DESTINATION_MATCHES = (
    *(
        f"--dst-opts {listed}"
        for listed in ("0", "1", "5", "5:2", "5,1", "5,5:2", "0,5", "30,99:4,0", "1:0,1:0")
    ),
    *("--dst-len 8 --dst-opts 5", "! --dst-len 8 --dst-opts 5", "--dst-opts 5:200", "--dst-opts 99:12,30"),
    *("--dst-opts 0,0,0,0,0,0", "--dst-opts 0,0,0,0,0,0,0", "--dst-len 16"),
)


def destination_packets() -> list[bytes]:
    """Packets with random options, some of which end behind their header, behind other headers, or cut."""
    draw = random.Random(7)

    def made() -> bytes:
        following, body = draw.choice(((NONE, b""), (UDP, bytes.fromhex(DATAGRAM))))
        for _ in range(draw.choice((0, 1, 1, 1, 2))):
            units, listed = draw.choice((0, 0, 1, 2)), b""
            while len(listed) < units * 8 + 6:
                kind, size = draw.choice((0, 1, 5, 30, 99)), draw.choice((0, 1, 2, 4, 12, 200))
                listed += bytes((kind, size)) + bytes(min(size, 12)) if kind else b"\0"
            body, following = bytes((following, units)) + listed[: units * 8 + 6] + body, DESTINATION
        if draw.random() < 0.2:
            body, following = bytes.fromhex(routing(following, 4)) + body, ROUTING
        elif draw.random() < 0.2:
            body, following = bytes.fromhex(options(following, 1)) + body, HOP
        return whole(following, body[: draw.randint(0, 40) if draw.random() < 0.1 else None].hex())

    return [made() for _ in range(200)]


def test_the_tc_program_reads_the_same_options_for_the_destination() -> None:
    require(TcEbpfBackend())
    rules = [f"-m dst {words}" for words in DESTINATION_MATCHES] + [
        "-m hbh --hbh-opts 30,0",
        "-m hbh --hbh-opts 30",
    ]
    packets = destination_packets()
    found = set()
    for packet, (legacy, ours) in zip(packets, matched_in_both(rules, packets, Family.IP6), strict=True):
        assert ours == legacy, packet.hex()
        found |= {words for words, holds in zip(rules, legacy, strict=True) if holds}
    assert len(found) > len(rules) / 2


def test_the_tc_program_reads_the_same_options() -> None:
    """The stack drops a packet whose options it refuses before iptables sees it (``ipv6_parse_hopopts``)."""
    require(TcEbpfBackend())
    rules = [f"-m hbh {words}".rstrip() for words in HOP_MATCHES]
    packets = hop_packets()
    compared = 0
    for packet, (legacy, ours) in zip(packets, matched_in_both(rules, packets, Family.IP6), strict=True):
        different = [words for words, a, b in zip(rules, legacy, ours, strict=True) if a != b]
        assert different == [] or not legacy[0], packet.hex()
        compared += legacy[0]
    assert compared > len(HOP_OPTIONS)
