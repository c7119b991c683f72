"""A connection that is forgotten begins anew; others of the same namespace go on."""

from __future__ import annotations

import pytest

from backends.model.node import Address, Interface, Node
from backends.model.packet import Packet
from backends.model.withfields import with_fields
from backends.nftables.backend import NftablesLoader
from backends.replay.session import open_session
from backends.testbed.tapnode import TapNode
from backends.wire.frames import build
from translate.ir import Family, Protocol, parse_address

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


class ProbingLoader(NftablesLoader):
    """Sends packets right after loading, and fails unless connections are known and forgotten as asked."""

    def load(self, tap: TapNode) -> None:
        super().load(tap)
        src, dst = address(self.family, 0, 5), address(self.family, 1, 5)
        packets = [
            Packet(family=self.family, src=src, dst=dst, proto=proto, sport=sport, dport=80)
            for proto in (Protocol.UDP, Protocol.TCP, Protocol.SCTP)
            for sport in (4000, 4001)
        ]
        assert [self.leaves(tap, p) for p in packets] == [True] * 6
        assert [self.leaves(tap, p) for p in packets] == [False] * 6
        for packet in packets[::2]:
            assert self.forget_one(tap, packet)
        assert [self.leaves(tap, p) for p in packets] == [True, False] * 3
        assert self.forget_one(tap, with_fields(packets[0], sport=5000)), "no such connection: all is done"
        assert [self.leaves(tap, p) for p in packets] == [False] * 6
        self.forget(tap)
        assert [self.leaves(tap, p) for p in packets] == [True] * 6
        assert not self.forget_one(tap, with_fields(packets[0], proto=Protocol.ICMP, sport=None, dport=None))
        assert not self.forget_all(tap, packets[:5]), "another connection is left"
        assert [self.leaves(tap, p) for p in packets] == [True] * 5 + [False]
        assert self.forget_all(tap, packets)
        assert [self.leaves(tap, p) for p in packets] == [True] * 6

    def leaves(self, tap: TapNode, packet: Packet) -> bool:
        tap.inject("a", build(packet))
        return [s.out for s in tap.drain()] == ["b"]


@pytest.mark.parametrize("family", Family)
def test_one_connection_is_forgotten_and_no_other(family: Family) -> None:
    interfaces = tuple(
        Interface(name, (Address(family, address(family, n, 1), family.bits - 8),))
        for n, name in enumerate(("a", "b"))
    )
    sysctl = "net.ipv4.ip_forward" if family is Family.IP else "net.ipv6.conf.all.forwarding"
    loader = ProbingLoader(ONLY_FIRST.format(family=family.value), family)
    with open_session(Node(interfaces, sysctls={sysctl: "1"}), loader):
        pass
