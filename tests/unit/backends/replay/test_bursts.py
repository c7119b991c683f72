"""Flows that are sent in one burst have the same results as flows that are sent one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backends.model.flow import Flow, Send
from backends.model.outcome import Verdict
from backends.model.packet import Packet
from backends.testbed.tapnode import Sighting
from backends.wire.frames import build
from tests.unit.backends.replay.helpers.fakenode import UDP, Behaviour, Forgetful, Node, icmp, out, replay_all
from translate.ir import Family


def changed_back(packet: Packet) -> Packet:
    """The same, but the payload, by which the two ways of sending differ."""
    return replace(packet, payload=b"")


ON_ITS_WAY: dict[str, Behaviour] = {
    "leaves": lambda p: [out(replace(p, dst=7, dport=70, ttl=63), mark=5)],
    "is delivered": lambda p: [out(replace(p, src=8), None)],
    "is dropped, every third": lambda p: [] if isinstance(p.sport, int) and p.sport % 3 == 0 else [out(p)],
    "is dropped": lambda p: [],
    "is answered": lambda p: [out(icmp(p, 3, 3), "a")],
    "is delivered and answered": lambda p: [out(p, None), out(icmp(p, 3, 3), "a")],
    "leaves twice": lambda p: [out(p), out(p, "c")],
    "leaves with another port": lambda p: [out(replace(p, sport=555))],
    "leaves without a mark": lambda p: [out(p, mark=None)],
    "leaves with a wrong checksum": lambda p: [out(replace(p, bad_checksum=p.sport == 12))],
    "leaves cut short": lambda p: [Sighting(build(p)[:-3] if p.sport == 12 else build(p), "b", 0)],
    "leaves with a stranger": lambda p: [
        out(p),
        *([out(replace(p, payload=b"who"))] if p.sport == 12 else []),
    ],
    "leaves with something else": lambda p: [out(p), Sighting(b"short", "b", 0)][: 1 + (p.sport == 12)],
}


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("what", ON_ITS_WAY)
def test_flows_that_are_sent_at_once_come_to_the_same(what: str, family: Family) -> None:
    node, single = Node(ON_ITS_WAY[what]), Node(ON_ITS_WAY[what])
    node.family = single.family = family
    packets = [replace(UDP, sport=n, family=family) for n in range(10, 19)]
    flows = [Flow(id=str(n), steps=(Send(packet=p, entry="a"),)) for n, p in enumerate(packets)]
    at_once = replay_all(node, flows)
    one_by_one = [replay_all(single, [flow])[0] for flow in flows]
    assert [r.branches for r in at_once] == [r.branches for r in one_by_one]
    assert [len(r.notes) for r in at_once] == [len(r.notes) for r in one_by_one]
    first = [changed_back(p) for p in node.sent[: len(flows)]]
    assert first == [changed_back(p) for p in single.sent]


def test_a_flow_that_a_rule_leads_to_another_ones_port_is_no_neighbour_of_it() -> None:
    """A flow's ports on arrival are only known afterwards; so the other flow is sent again, alone."""
    node, loader = Node(lambda p: [out(replace(p, dport=11))]), Forgetful()
    flows = [Flow(id=str(n), steps=(Send(packet=replace(UDP, sport=n), entry="a"),)) for n in (10, 11, 12)]
    results = replay_all(node, flows, loader)
    assert [p.sport for p in node.sent] == [10, 11, 12, 11]
    assert loader.times == 1
    assert [r.branches[0].outcomes[0].sport for r in results] == [10, 11, 12]


def test_where_nothing_is_certain_no_more_is_sent_at_once() -> None:
    node = Node(lambda p: [])
    flows = [Flow(id=str(n), steps=(Send(packet=replace(UDP, sport=n), entry="a"),)) for n in range(100, 300)]
    assert {r.branches[0].outcomes[0].verdict for r in replay_all(node, flows)} == {Verdict.DROP}
    assert len(node.sent) == 200 + 64


def test_datagrams_are_not_sent_at_once_where_each_is_watched() -> None:
    loader = Forgetful()
    loader.watches = True
    flows = [Flow(id=str(n), steps=(Send(packet=replace(UDP, sport=n), entry="a"),)) for n in (1, 2, 3)]
    assert len(replay_all(Node(lambda p: [out(p)]), flows, loader)) == loader.looked == 3
