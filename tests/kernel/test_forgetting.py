"""A connection that is forgotten begins anew; others of the same namespace go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from backends.model.node import Address, Interface, Node
from backends.model.packet import Packet
from backends.nftables.backend import NftablesLoader
from backends.replay.loader import Loader
from backends.replay.session import open_session
from backends.tc_ebpf.backend import TcEbpfBackend
from backends.tc_ebpf.loader import TcEbpfLoader
from backends.testbed.tapnode import TapNode
from backends.wire.frames import build
from tests.kernel.helpers.availability import require
from translate.bpf import emit
from translate.ir import Family, Protocol, parse_address
from translate.passes import lower
from translate.read import read_ruleset

NETWORKS = {Family.IP: ("192.0.2.0", "198.51.100.0"), Family.IP6: ("2001:db8:1::", "2001:db8:2::")}
ONLY_FIRST = """
table {family} nfparity {{
    chain forward {{
        type filter hook forward priority 0; policy drop;
        ct mark 0 ct mark set 1 accept
    }}
}}
"""


def address(family: Family, network: int, host: int) -> int:
    return parse_address(family, NETWORKS[family][network]) + host


RULES = """
*mangle
-A FORWARD -m connmark --mark 0 -j MARK --set-mark 1
-A FORWARD -j CONNMARK --set-mark 1
COMMIT
*filter
:FORWARD DROP
-A FORWARD -m mark --mark 1 -j ACCEPT
COMMIT
"""


def probe(loader: Loader, tap: TapNode) -> None:
    """Send packets right after loading, and fail unless connections are known and forgotten as asked."""
    src, dst = address(loader.family, 0, 5), address(loader.family, 1, 5)
    packets = [
        Packet(family=loader.family, src=src, dst=dst, proto=proto, sport=sport, dport=80)
        for proto in (Protocol.UDP, Protocol.TCP, Protocol.SCTP)
        for sport in (4000, 4001)
    ]
    assert [leaves(tap, p) for p in packets] == [True] * 6
    assert [leaves(tap, p) for p in packets] == [False] * 6
    for packet in packets[::2]:
        assert loader.forget_one(tap, packet)
    assert [leaves(tap, p) for p in packets] == [True, False] * 3
    assert loader.forget_one(tap, replace(packets[0], sport=5000)), "no such connection: all is done"
    assert [leaves(tap, p) for p in packets] == [False] * 6
    loader.forget(tap)
    assert [leaves(tap, p) for p in packets] == [True] * 6
    assert not loader.forget_one(tap, replace(packets[0], proto=Protocol.ICMP, sport=None, dport=None))
    assert not loader.forget_all(tap, packets[:5]), "another connection is left"
    assert [leaves(tap, p) for p in packets] == [True] * 5 + [False]
    assert loader.forget_all(tap, packets)
    assert [leaves(tap, p) for p in packets] == [True] * 6


def leaves(tap: TapNode, packet: Packet) -> bool:
    tap.inject("a", build(packet))
    return [s.out for s in tap.drain()] == ["b"]


class ProbingNftables(NftablesLoader):
    def load(self, tap: TapNode) -> None:
        super().load(tap)
        probe(self, tap)


class ProbingTcEbpf(TcEbpfLoader):
    def load(self, tap: TapNode) -> None:
        super().load(tap)
        probe(self, tap)


def nftables(family: Family) -> Loader:
    return ProbingNftables(ONLY_FIRST.format(family=family.value), family)


def tc_ebpf(family: Family) -> Loader:
    require(TcEbpfBackend())
    return ProbingTcEbpf(emit(lower(read_ruleset(RULES.encode(), name="rules", family=family), level=2)))


@pytest.mark.parametrize("make", [nftables, tc_ebpf])
@pytest.mark.parametrize("family", Family)
def test_one_connection_is_forgotten_and_no_other(family: Family, make: Callable[[Family], Loader]) -> None:
    interfaces = tuple(
        Interface(name, (Address(family, address(family, n, 1), family.bits - 8),))
        for n, name in enumerate(("a", "b"))
    )
    sysctl = "net.ipv4.ip_forward" if family is Family.IP else "net.ipv6.conf.all.forwarding"
    with open_session(Node(interfaces, sysctls={sysctl: "1"}), make(family)):
        pass
