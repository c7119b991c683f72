"""A difference between orders, in every form of report."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest

from backends.model.flow import Flow, Send
from backends.model.node import node_from_json
from backends.model.outcome import Outcome, Verdict
from backends.model.packet import Packet
from nfparity.assess.accepted import Accepted
from nfparity.assess.assessing import Assessment
from nfparity.assess.difference import ChangedPacket, Evidence
from nfparity.assess.fleet.node import ORDER, answer_of
from nfparity.assess.node.components import IPTABLES
from nfparity.assess.node.facts import gather
from nfparity.assess.replay.orders import Binding, Order, OrderDifference
from nfparity.assess.severity import Severity, order_severity
from nfparity.assess.summary import Summary
from nfparity.kubeproxy import recover
from nfparity.report.assessjson import assessment_json
from nfparity.report.assessjunit import assessment_junit
from nfparity.report.assessment import print_assessment
from nfparity.report.assesssarif import assessment_sarif
from nfparity.report.orders import order_outcomes
from nfparity.report.pages.assessment import assessment_page
from tests.unit.harness.report.helpers.formats import checked_junit, checked_sarif
from translate.ir import Family, Origin, Protocol
from translate.read import read_ruleset

PACKET = Packet(family=Family.IP, src=0xC6336407, dst=0x0A000001, proto=Protocol.TCP, sport=1, dport=80)
TO_SERVICE = Outcome(
    verdict=Verdict.FORWARD, out="cni0", src=PACKET.src, dst=0x0AF40005, sport=1, dport=80, dnat=True, mark=0
)
MARKED = replace(TO_SERVICE, mark=0x80)


def difference(after: Outcome, binding: Binding, *fields: str) -> OrderDifference:
    flow = Flow(id="K20/x", steps=(Send(packet=PACKET, entry="eth0"),))
    changed = ChangedPacket(
        flow=flow, step=0, packet=PACKET, entry="eth0", before=TO_SERVICE, after=after, fields=fields
    )
    line = Evidence(Origin("dump", 7, 0, "-A PREROUTING -j X"), 3)
    order = Order(later=(IPTABLES,), places=("prerouting, priority -100",))
    return OrderDifference(order=order, binding=binding, lines=(line,), examples=(changed,))


@pytest.fixture
def summary() -> Summary:
    ruleset = read_ruleset(b"*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n", name="dump")
    node = node_from_json('{"interfaces": {"eth0": ["192.168.0.2/24"]}}', name="node")
    facts = gather(ruleset, node, recover(ruleset), version=(1, 37))
    orders = (difference(MARKED, Binding.MARK, "mark"),)
    sides = (("iptables-legacy", {"K20/x": 0.0}), ("kube-proxy-nftables", {"K20/x": 0.0}))
    assessment = Assessment(facts=facts, orders=orders, flows=1, sides=sides)
    return Summary(snapshot="node", version=(1, 37), against=None, assessments=(assessment,))


def test_text_has_the_decision_both_outcomes_and_both_ways(summary: Summary) -> None:
    stream = io.StringIO()
    print_assessment(summary, stream)
    text = stream.getvalue()
    assert "ORDER  the outcome depends on the order in which two components register their chains\n" in text
    assert (
        "decides      mark by kube-proxy or by the other iptables rules (prerouting, priority -100)" in text
    )
    assert "kube-proxy first: leaves by cni0, as 198.51.100.7:1 > 10.244.0.5:80, with mark 0x0\n" in text
    assert "the others first: leaves by cni0, as 198.51.100.7:1 > 10.244.0.5:80, with mark 0x80\n" in text
    assert "reached      kube-proxy first: kube-proxy starts in nftables mode" in text
    assert "changes      order of registration: mark" in text
    assert "1 difference between orders; 1 flow" in text


def test_other_forms_have_the_packet_and_the_line(summary: Summary) -> None:
    (order,) = json.loads(assessment_json(summary))["families"][0]["orders"]
    assert order["registered later"] == [IPTABLES]
    assert order["lines"][0]["line"] == 7
    example = order["examples"][0]
    assert (example["kube-proxy first"]["mark"], example["others first"]["mark"]) == (0, 0x80)
    (result,) = checked_sarif(json.loads(assessment_sarif(summary, version="1.2.3")))["results"]
    assert result["ruleId"] == "ORDER"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 7
    checked_junit(assessment_junit(summary, times=False), times=False)
    assert "ORDER: mark by kube-proxy or by the other iptables rules" in assessment_junit(
        summary, times=False
    )
    assert "kube-proxy&#39;s chains first: leaves by cni0" in assessment_page(summary, version="1")


def test_a_fleet_has_it_as_a_finding_of_its_own(summary: Summary) -> None:
    (found,) = answer_of(summary, "node").differences
    assert (found.id, found.subject) == (ORDER, "mark by kube-proxy or by the other iptables rules")


def test_it_can_be_accepted_by_name_or_by_a_report(summary: Summary) -> None:
    assert not Accepted.of_names(["ORDER"]).removed_from(summary).changes
    report = Accepted.of_report(assessment_json(summary), name="report")
    accepted = report.removed_from(summary)
    assert (accepted.changes, accepted.accepted) == (False, 1)


def test_it_breaks_traffic_only_if_one_order_loses_the_packet() -> None:
    dropped = difference(Outcome(verdict=Verdict.DROP), Binding.VERDICT, "verdict")
    assert order_severity(dropped) is Severity.BREAKS
    assert order_severity(difference(MARKED, Binding.MARK, "mark")) is Severity.CHANGES
    assert order_outcomes(dropped.examples[0], Family.IP)[1] == "dropped, without an answer"
