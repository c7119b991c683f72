"""Fragment headers of IPv6 in the tc program and in iptables-legacy, with and without conntrack."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import product

import pytest

from backends.iptables.backend import IptablesLoader
from backends.replay.loader import Loader
from backends.replay.worker import Worker
from backends.tc_ebpf import TcEbpfBackend
from backends.tc_ebpf.loader import TcEbpfLoader
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.tcnode import StartWith, node_of
from translate.bpf import emit
from translate.ir import Family, parse_address
from translate.passes import lower
from translate.read import read_ruleset

UDP, FRAGMENT, HOP, DESTINATION, ROUTING = 17, 44, 0, 60, 43
MATCHES = (
    *("frag", "frag --fragid 7", "frag ! --fragid 7:8", "frag --fragres", "frag --fragfirst"),
    *("frag --fragmore", "frag --fraglast", "ipv6header --header frag --soft"),
)
TRACKING = "-m conntrack --ctstate NEW,INVALID -j ACCEPT"
OTHERS = ("-p udp --dport 53", "-m hl --hl-eq 64", "-p udp", "-m length --length 64", "-p tcp --syn")


@pytest.fixture(scope="module", autouse=True)
def _needs_bcc() -> None:
    require(TcEbpfBackend())


def packed(address: str) -> bytes:
    return parse_address(Family.IP6, address).to_bytes(16, "big")


BETWEEN = packed("fd00::1:1") + packed("2001:db8::200")


def summed(data: bytes) -> bytes:
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    return (0xFFFF - total % 0xFFFF).to_bytes(2, "big")


def datagram() -> bytes:
    body = struct.pack("!HHHH", 5000, 53, 16, 0) + b"8 bytes."
    return body[:6] + summed(BETWEEN + struct.pack("!II", len(body), UDP) + body) + body[8:]


def packets(*, whole: bool) -> Iterator[bytes]:
    """Packets with a fragment header at several places; ``whole``: those in one piece."""
    words = (0, 2, 4, 6) if whole else (1, 3, 7, 8, 9, 0xFFF8, 16)
    chains: tuple[tuple[int, ...], ...] = ((), (HOP,), (DESTINATION,), (HOP, DESTINATION), (HOP, ROUTING))
    for word, ident, reserved, chain in product(words, (6, 7, 8, 9), (0, 1), chains):
        body = bytes((UDP, reserved)) + struct.pack("!HI", word, ident) + datagram()
        following = FRAGMENT
        for kind in reversed(chain):
            head = bytes((following, 0, 0, 0) if kind == ROUTING else (following, 0, 1, 4))
            body, following = head + bytes(4) + body, kind
        yield struct.pack("!IHBB", 6 << 28, len(body), following, 64) + BETWEEN + body


def left(loader: Loader, *, whole: bool) -> list[list[str]]:
    """The packets that leave for each that is sent."""
    with Worker(StartWith(node_of(Family.IP6), loader)) as worker:
        return [
            [one.hex() for one in worker.ask(("send", "pod0", [packet]))] for packet in packets(whole=whole)
        ]


def text_of(*, tracks: bool) -> str:
    marked = [f"-A PREROUTING -m {words} -j TOS --or-tos {1 << bit:#x}" for bit, words in enumerate(MATCHES)]
    others = [f"-A POSTROUTING {words} -j HL --hl-dec {1 << bit}" for bit, words in enumerate(OTHERS)]
    state = [f"-A FORWARD {TRACKING}"] if tracks else []
    return "\n".join(("*mangle", *marked, *others, "COMMIT", "*filter", *state, "COMMIT", ""))


@pytest.mark.parametrize("level", [0, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("tracks", [True, False])
@pytest.mark.parametrize("whole", [True, False])
def test_a_packet_leaves_with_the_same_bytes(whole: bool, tracks: bool, level: int) -> None:
    """Conntrack removes the header of a packet in one piece, and keeps fragments until it has all of them."""
    text = text_of(tracks=tracks)
    program = emit(lower(read_ruleset(text.encode(), name="rules", family=Family.IP6), level=level))
    expected = left(IptablesLoader("ip6tables-legacy", text, Family.IP6), whole=whole)
    found = left(TcEbpfLoader(program), whole=whole)
    for packet, there, ours in zip(packets(whole=whole), expected, found, strict=True):
        assert ours == there, packet.hex()
    assert any(expected) is (whole or not tracks)
    if not tracks:
        found_bits = {int(one[1:3], 16) for there in expected for one in there}
        more = 1 << MATCHES.index("frag --fragmore")
        assert any(value & more for value in found_bits) is not whole
        assert all(any(value >> bit & 1 for value in found_bits) for bit in range(8) if 1 << bit != more)
