"""The stored part of an assessment."""

from __future__ import annotations

import pickle

from backends.model.flow import Flow, Send
from backends.model.node import node_from_json
from backends.model.outcome import Outcome, Verdict
from backends.model.packet import Packet
from nfparity.assess.assessing import Assessment, Finding
from nfparity.assess.catalogue import entry
from nfparity.assess.difference import ChangedPacket, Evidence
from nfparity.assess.fleet.node import LEAK, NOT_JUDGED, UNEXPLAINED, NodeDifference, answer_of
from nfparity.assess.leaks import Leak
from nfparity.assess.node.facts import gather
from nfparity.assess.replay.replaying import Disputed
from nfparity.assess.summary import Summary
from nfparity.kubeproxy import recover
from translate.ir import Family, Origin, Protocol
from translate.read import read_ruleset


def changed(name: str, dst: int) -> ChangedPacket:
    packet = Packet(family=Family.IP, src=1, dst=dst, proto=Protocol.TCP, sport=1, dport=80)
    return ChangedPacket(
        flow=Flow(id=name, steps=(Send(packet=packet, entry="eth0"),)),
        step=0,
        packet=packet,
        entry="eth0",
        before=Outcome(verdict=Verdict.FORWARD, out="cni0", src=1, dst=5, dnat=True),
        after=Outcome(verdict=Verdict.DROP),
        fields=("verdict",),
    )


def summary(address: str, packets: int) -> Summary:
    ruleset = read_ruleset(b"*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n", name="dump")
    node = node_from_json(f'{{"interfaces": {{"eth0": ["{address}/24"]}}}}', name="node")
    line = Evidence(Origin("dump", 7, 0, ""), packets)
    flow = changed(f"odd-{address}", packets)
    one = Assessment(
        facts=gather(ruleset, node, recover(ruleset)),
        findings=(Finding(entry=entry("K01"), subject="a/b:c", lines=(line,), examples=(flow,)),),
        unexplained=(Finding(entry=None, subject="?", examples=(flow,)),) * 2,
        leaks=(Leak(kind="an address", device="eth0", examples=(flow,)),),
        flows=9,
        disputed=(Disputed(f"odd-{address}", "verdict"),),
    )
    return Summary(snapshot="dump", version=None, against="x", assessments=(one,))


def test_every_kind_of_finding_is_kept() -> None:
    answer = answer_of(summary("192.168.0.2", 3), "n1")
    assert answer.differences == (
        NodeDifference("K01", Family.IP, "a/b:c"),
        NodeDifference(LEAK, Family.IP, "an address (not after)"),
        NodeDifference(NOT_JUDGED, Family.IP, "flows on which simulator and kernel disagree (1)"),
        NodeDifference(UNEXPLAINED, Family.IP, "service before, dropped after; differs in verdict (2)"),
    )
    assert answer.differences[0].packets == 3
    assert answer.ids == ("K01", LEAK, NOT_JUDGED, UNEXPLAINED)
    assert dict(answer.titles) == {"K01": entry("K01").title}
    assert answer.flows == 9


def test_nodes_that_differ_in_address_and_counters_are_alike() -> None:
    one, other = answer_of(summary("192.168.0.2", 3), "n1"), answer_of(summary("192.168.0.3", 5), "n2")
    assert one.differences == other.differences


def test_little_is_kept() -> None:
    assert len(pickle.dumps(answer_of(summary("192.168.0.2", 3), "n1"))) < 2000
