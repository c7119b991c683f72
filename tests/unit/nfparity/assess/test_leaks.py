"""Packets to service addresses that leave by the default route."""

from __future__ import annotations

import pytest

from backends.model.flow import Flow, Send
from backends.model.outcome import Outcome, Verdict
from backends.model.packet import Packet
from nfparity.assess.difference import ChangedPacket
from nfparity.assess.leaks import leaks
from nfparity.assess.node.facts import Facts
from translate.ir import Family, Protocol, parse_address


def changed(
    dst: str,
    *,
    proto: int = Protocol.TCP,
    out: str = "eth0",
    entry: str | None = "cni0",
    remains: bool = False,
) -> ChangedPacket:
    port = 9 if proto == Protocol.TCP else None
    packet = Packet(
        family=Family.IP,
        src=parse_address(Family.IP, "10.244.0.5"),
        dst=parse_address(Family.IP, dst),
        proto=proto,
        sport=port,
        dport=port,
    )
    left = Outcome(verdict=Verdict.FORWARD, out=out, src=packet.src, dst=packet.dst)
    after = left if remains else Outcome(verdict=Verdict.REJECT, reject_with="icmp-port-unreachable")
    flow = Flow(id="x", steps=(Send(packet=packet, entry=entry),))
    return ChangedPacket(flow=flow, step=0, packet=packet, entry=entry, before=left, after=after)


@pytest.mark.parametrize(
    ("one", "kind"),
    [
        (changed("10.98.0.6"), "an undefined port of a ClusterIP"),
        (changed("10.98.0.6", proto=Protocol.ICMP), "a ClusterIP, without a port"),
        (changed("10.98.0.200"), "an address of the service range that no service has"),
        (changed("10.98.0.200", entry=None), "an address of the service range that no service has"),
    ],
)
def test_what_leaves_by_the_default_route_is_told_by_kind(
    facts: Facts, one: ChangedPacket, kind: str
) -> None:
    (leak,) = leaks(facts, [one])
    assert (leak.kind, leak.device, leak.remains) == (kind, "eth0", False)


@pytest.mark.parametrize(
    "one",
    [
        changed("192.0.2.1"),
        changed("10.98.0.6", out="cni0", entry="eth0"),
        changed("10.98.0.6", entry="eth0"),
    ],
    ids=["no service's", "another way", "back to where it came from"],
)
def test_what_does_not_leave_the_cluster_is_no_leak(facts: Facts, one: ChangedPacket) -> None:
    assert not list(leaks(facts, [one]))


def test_a_leak_remains_where_any_packet_still_leaves(facts: Facts) -> None:
    (leak,) = leaks(facts, [changed("10.98.0.200"), changed("10.98.0.201", remains=True)])
    assert leak.remains
    assert len(leak.examples) == 2
