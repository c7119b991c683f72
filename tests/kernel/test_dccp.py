"""``-m dccp`` and its translation beside each other: no corpus has packets of DCCP."""

from __future__ import annotations

import os
import random
import struct
from ipaddress import ip_address

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
    *("", "-m dccp", "-m dccp --sport 5", "-m dccp ! --sport 5", "-m dccp --dport 80:90"),
    *("-m dccp ! --dport 80:90", "-m dccp --sport 5 --dport 80"),
    *("-m dccp --dport 0", "-m dccp ! --dport 0:65535", "-m dccp --dccp-types REQUEST,SYNC"),
    *("-m dccp ! --dccp-types REQUEST,DATA,ACK", "-m dccp --dccp-types INVALID"),
    *("-m dccp --dport 80 --dccp-types RESPONSE", "-m dccp ! --dccp-types invalid,SYNCACK"),
)
UNTIL_1_8_9 = "-m dccp --dport 90:80"  # later releases refuse a range that ends before it begins
NEVER = {UNTIL_1_8_9, "-m dccp ! --dport 0:65535"}
PORTS = ((5, 80), (5, 79), (6, 80), (6, 90), (6, 91), (5, 0), (65535, 65535))
OWN = {Family.IP: ip_address("127.0.0.1").packed, Family.IP6: ip_address("::1").packed}


def whole(family: Family, proto: int, sport: int, dport: int, kind: int = 0) -> bytes:
    """Return a request of DCCP, or bytes like it of another protocol."""
    body = struct.pack("!HHBBHBB6x", sport, dport, 5, 0, 0, kind << 1 | 1, 0) + bytes(4)
    addresses = OWN[family] * 2
    if family is Family.IP6:
        return struct.pack("!IHBB", 6 << 28, len(body), proto, 64) + addresses + body
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 64, proto, 0) + addresses + body


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("family", Family)
def test_the_kernel_reads_the_same_ports(family: Family, level: int) -> None:
    packets = [whole(family, 33, *ports) for ports in PORTS] + [whole(family, 132, 5, 80)]
    packets += [whole(family, 33, 5, 80, kind) for kind in range(16)]
    matches = MATCHES if is_later_than_1_8_9() else (*MATCHES, UNTIL_1_8_9)
    rules = [f"-p dccp {words}".rstrip() for words in matches]
    states = counts_of_both(rules, packets, family, level=level)
    for packet, (legacy, ours) in zip(packets, states, strict=True):
        assert ours == legacy, packet.hex()
    counts = dict(zip(matches, states[-1][0], strict=True))
    assert counts[""] == counts["-m dccp"] == len(PORTS) + 16
    assert {words for words, count in counts.items() if not count} == NEVER & set(matches)


@pytest.mark.parametrize("family", Family)
def test_the_tc_program_reads_the_same_types(family: Family) -> None:
    require(TcEbpfBackend())
    packets = [whole(family, 33, *ports) for ports in PORTS] + [whole(family, 132, 5, 80)]
    packets += [whole(family, 33, 5, 80, kind) for kind in range(16)]
    rules = [f"-p dccp {words}".rstrip() for words in MATCHES]
    states = matched_in_both(rules, packets, family)
    for packet, (legacy, ours) in zip(packets, states, strict=True):
        assert ours == legacy, packet.hex()
    assert {
        words for words, *held in zip(MATCHES, *(a for a, _ in states), strict=True) if not any(held)
    } == (NEVER & set(MATCHES))


OPTIONS = (1, 2, 5, 31, 32, 44, 255, 200)
LENGTHS = {0: 4, 1: 12, 2: 0, 7: 12}
"""The bytes of a packet's header behind its sequence number, by type; those of others acknowledge."""


def with_options(family: Family, draw: random.Random) -> bytes:
    """Return a packet with random options, some not whole, or with a wrong length of the header."""
    kind, long = draw.randrange(13), draw.randrange(2)
    before = 12 + 4 * long + LENGTHS.get(kind, 12 if kind > 9 else 8)
    listed = b""
    for _ in range(draw.randint(0, 6)):
        option, length = draw.choice((0, *OPTIONS, draw.randrange(256))), draw.choice((0, 1, 2, 3, 5, 9))
        listed += (
            bytes((option,)) if option < 2 else bytes((option, length)) + draw.randbytes(max(length - 2, 0))
        )
    if draw.random() < 0.05:
        listed = draw.randbytes(900)
    listed = listed[: len(listed) // 4 * 4]
    words = draw.randrange(256) if draw.random() < 0.1 else (before + len(listed)) // 4
    head = struct.pack("!HHBBHBBH", 5, 80, words, 0, 0, long | kind << 1, 0, 0)
    body = head + bytes(before - 12) + listed + bytes((5, 5))
    addresses = OWN[family] * 2
    if family is Family.IP6:
        return struct.pack("!IHBB", 6 << 28, len(body), 33, 64) + addresses + body
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 64, 33, 0) + addresses + body


@pytest.mark.parametrize("family", Family)
def test_the_tc_program_reads_the_same_options(family: Family) -> None:
    """iptables drops a packet whose options are not whole; no rule sees it then."""
    require(TcEbpfBackend())
    draw = random.Random(5)
    packets = [with_options(family, draw) for _ in range(200)]
    rules = [f"-p dccp -m dccp {no}--dccp-option {option}" for option in OPTIONS for no in ("", "! ")]
    states = matched_in_both(rules, packets, family)
    for packet, (legacy, ours) in zip(packets, states, strict=True):
        assert ours == legacy, packet.hex()
    assert all(set(held) == {True, False} for held in zip(*(legacy for legacy, _ in states), strict=True))
