"""Features of the tc program for IPv6 that no flow tests: extension headers, and untouched discovery."""

from __future__ import annotations

from dataclasses import replace

from backends.model.node import node_from_json
from backends.model.packet import Packet
from backends.replay.session import open_session
from backends.tc_ebpf import TcEbpfBackend
from backends.tc_ebpf.loader import TcEbpfLoader
from backends.testbed.tapnode import TapNode
from backends.wire.frames import build
from backends.wire.parsing import parse
from tests.kernel.helpers.availability import require
from translate.bpf import emit
from translate.ir import Family, Protocol, parse_address
from translate.passes import lower
from translate.read import read_ruleset

NODE = node_from_json(
    '{"interfaces": {"pod0": ["fd00:10:244::1/64"], "pod1": ["fd00:10:245::1/64"]}}', name="node"
)
RULES = """*nat
:PREROUTING ACCEPT [0:0]
-A PREROUTING -d fd00:10:96::a/128 -p udp -m udp --dport 53 -j DNAT --to-destination [fd00:10:245::5]:5353
COMMIT
*filter
:INPUT ACCEPT [0:0]
-A INPUT -m conntrack --ctstate INVALID -j DROP
COMMIT
"""
HOP_BY_HOP, ROUTING, DESTINATION, PAD = 0, 43, 60, b"\1\4\0\0\0\0"
ROUTED = b"\0\0\0\0\0\0"  # no segments left


def ip(text: str) -> int:
    return parse_address(Family.IP6, text)


def with_headers(packet: Packet, *headers: tuple[int, bytes]) -> bytes:
    """The packet with extension headers of eight bytes before its transport header."""
    data = build(packet)
    kinds = [kind for kind, _ in headers] + [packet.proto]
    extra = b"".join(bytes((then, 0)) + body for then, (_, body) in zip(kinds[1:], headers, strict=True))
    length = len(data) - 40 + len(extra)
    return data[:4] + length.to_bytes(2, "big") + bytes((kinds[0],)) + data[7:40] + extra + data[40:]


ASKED = Packet(
    family=Family.IP6,
    src=ip("fd00:10:244::9"),
    dst=ip("fd00:10:96::a"),
    proto=Protocol.UDP,
    sport=4000,
    dport=53,
    payload=b"question",
)
SOLICITATION = Packet(
    family=Family.IP6,
    src=ip("fd00:10:244::9"),
    dst=ip("fd00:10:244::1"),
    proto=Protocol.ICMPV6,
    icmp_type=135,
    icmp_code=0,
    ttl=255,
    payload=ip("fd00:10:244::1").to_bytes(16, "big"),
)


class ProbingLoader(TcEbpfLoader):
    """Sends frames that no Flow describes, right after loading, and fails unless they fare as expected."""

    def load(self, tap: TapNode) -> None:
        super().load(tap)
        options = (HOP_BY_HOP, PAD), (ROUTING, ROUTED), (DESTINATION, PAD)
        for n, headers in enumerate(((), options[:1], options[2:], options, (options[2],) * 8)):
            tap.inject("pod0", with_headers(replace(ASKED, sport=4000 + n), *headers))
            (seen,) = tap.drain()
            assert seen.out == "pod1", headers
            parsed = parse(seen.data)
            assert parsed.faults == ()
            assert (parsed.packet.dst, parsed.packet.dport) == (ip("fd00:10:245::5"), 5353)
        tap.inject("pod0", with_headers(ASKED, *[(DESTINATION, PAD)] * 9))
        assert tap.drain() == []
        tap.inject("pod0", build(SOLICITATION))
        assert [parse(s.data).packet.icmp_type for s in tap.drain() if s.out is None] == [135]


def test_extension_headers_and_discovery() -> None:
    require(TcEbpfBackend())
    output = emit(lower(read_ruleset(RULES.encode(), name="rules", family=Family.IP6), level=1))
    with open_session(NODE, ProbingLoader(output)):
        pass
