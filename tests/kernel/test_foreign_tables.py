"""Services beside nftables tables of other programs are tested by classes, with the same results."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow
from backends.model.outcome import FlowResult, Verdict
from backends.model.packet import Packet, PortClass
from backends.simulator import Simulation
from nfparity.assess.assessing import detector_flows
from nfparity.assess.node.facts import Facts, gather
from nfparity.assess.reordering import Reordering
from nfparity.assess.replay import replaying
from nfparity.assess.replay.alike import FlowClass, flow_classes
from nfparity.kubeproxy import recover
from nfparity.report.assessjson import assessment_json
from tests.kernel.helpers.foreigntables import TWO_MODES, assessed_beside, listed
from tests.lab.kuberules import Cluster, Shape, draw_cluster, kube_proxy_rules
from translate.ir import Family, Interval, format_address
from translate.read import read_ruleset

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
]

PLANTED = """\
table ip planted {{
	set some {{
		type ipv4_addr
		elements = {{ {elements} }}
	}}
	chain elsewhere {{
		numgen random mod 20 0 meta l4proto tcp dnat to 198.51.100.99:9999
	}}
	chain prerouting {{
		type nat hook prerouting priority -100; policy accept;
		{test} jump elsewhere
	}}
	chain output {{
		type nat hook output priority -100; policy accept;
		{test} jump elsewhere
	}}
}}
"""
"""One of twenty connections goes elsewhere, but only if these chains run before kube-proxy's.

A single packet to each service would rarely show it.
"""


@cache
def cluster() -> Cluster:
    return draw_cluster(Shape(services=16, endpoints=1, node_ports=6, base=False))


@cache
def large_cluster() -> Cluster:
    return draw_cluster(Shape(services=60, endpoints=1, node_ports=24, base=False))


@cache
def sent_once() -> tuple[Packet, ...]:
    """The packets of K20 that are sent once in each mode without another table, by address."""
    rules = read_ruleset(kube_proxy_rules(large_cluster()).encode(), name="rules")
    facts = gather(rules, large_cluster().node, recover(rules), version=(1, 36))
    flows = {i: flow for i, flow in detector_flows(facts)[0].items() if i.startswith("K20/")}
    simulation = Simulation(Job(rules=rules, node=facts.node))
    expected = {flow.id: simulation.simulate(flow) for flow in flows.values()}
    classes = flow_classes(facts, tuple(flows.values()), expected)
    once = [i for one in classes if len(one.others) > 2 for i, _ in one.others]
    return tuple(sorted((flows[i].first.packet for i in once), key=lambda packet: packet.dst))


def to_cluster_ips() -> list[Packet]:
    own = {a.value for i in large_cluster().node.interfaces for a in i.addresses}
    return [packet for packet in sent_once() if packet.dst not in own]


def text(address: int) -> str:
    return format_address(Family.IP, address)


_Plant = tuple[str, set[tuple[int, int | None]]]
"""The test of a planted rule, and the addresses and ports of the packets for which it holds."""


def by_address() -> _Plant:
    packet = to_cluster_ips()[3]
    return f"ip daddr {text(packet.dst)}", {_place(packet)}


def by_element() -> _Plant:
    return "ip daddr @some", {_place(to_cluster_ips()[5])}


def by_prefix() -> _Plant:
    """The longest prefix with two addresses of services, and no others."""
    services = [s.cluster_ip for s in large_cluster().services if s.cluster_ip is not None]
    for length in range(31, 8, -1):
        for packet in to_cluster_ips():
            prefix = Interval.prefix(packet.dst, length, 32)
            members = {_place(other) for other in to_cluster_ips() if other.dst in prefix}
            if len(members) == 2 == sum(address in prefix for address in services):
                return f"ip daddr {text(prefix.low)}/{length}", members
    raise AssertionError("no prefix has two services")


def by_port() -> _Plant:
    packet = next(packet for packet in sent_once() if packet not in to_cluster_ips())
    return f"tcp dport {packet.dport}", {_place(packet)}


def _place(packet: Packet) -> tuple[int, int | None]:
    assert not isinstance(packet.dport, PortClass)
    return packet.dst, packet.dport


@pytest.mark.parametrize("plant", [by_address, by_element, by_prefix, by_port])
def test_members_of_a_class_that_a_table_treats_differently_are_found(
    plant: Callable[[], _Plant], monkeypatch: pytest.MonkeyPatch
) -> None:
    classes: list[tuple[FlowClass, ...]] = []

    def recorded(*given: object) -> tuple[FlowClass, ...]:
        classes.append(flow_classes(*given))  # type: ignore[arg-type]
        return classes[-1]

    monkeypatch.setattr(replaying, "flow_classes", recorded)
    test, wanted = plant()
    elements = f"{text(to_cluster_ips()[5].dst)}, 198.18.0.1"
    nft = listed(PLANTED.format(test=test, elements=elements))
    (assessment,) = assessed_beside(large_cluster(), nft, only=["K20"]).assessments
    packets = [changed.packet for order in assessment.orders for changed in order.examples]
    assert {_place(packet) for packet in packets} == wanted
    assert sum(len(one.others) for group in classes for one in group) > 20


def without_classes(facts: Facts, flows: Sequence[Flow], expected: object) -> tuple[FlowClass, ...]:
    return ()


@pytest.mark.parametrize("tool", ["netavark", pytest.param("firewalld", marks=pytest.mark.slow)])
def test_the_report_is_that_of_testing_each_flow_in_each_order(
    tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nft = listed((TWO_MODES / tool / "nftables/ruleset.nft").read_text())
    by_class = assessment_json(assessed_beside(cluster(), nft))
    monkeypatch.setattr(replaying, "flow_classes", without_classes)
    monkeypatch.setattr(Reordering, "may_change", lambda *_: True)
    assert assessment_json(assessed_beside(cluster(), nft)) == by_class


def test_few_flows_without_refused_packets_are_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    replayed: list[bool] = []
    decide = Reordering.may_change

    def recorded(self: Reordering, flow: Flow, result: FlowResult) -> bool:
        again = decide(self, flow, result)
        outcomes = [outcome for branch in result.branches for outcome in branch.outcomes]
        if all(outcome.verdict in (Verdict.FORWARD, Verdict.LOCAL) for outcome in outcomes):
            replayed.append(again)
        return again

    monkeypatch.setattr(Reordering, "may_change", recorded)
    assessed_beside(cluster(), listed((TWO_MODES / "netavark/nftables/ruleset.nft").read_text()))
    assert len(replayed) > 40
    assert sum(replayed) < len(replayed) / 10


def test_a_table_that_cannot_be_read_prevents_classes_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def recorded(*given: object) -> tuple[FlowClass, ...]:
        asked.append(given)
        return ()

    monkeypatch.setattr(replaying, "flow_classes", recorded)
    rule = "ip saddr 198.18.0.1 jhash ip daddr mod 2 0 drop"
    nft = listed(f"table ip hashing {{ chain c {{ type filter hook forward priority 5; {rule}; }}; }}\n")
    (assessment,) = assessed_beside(cluster(), nft, only=["K05"]).assessments
    assert not asked
    assert any(
        "table ip hashing treats alike" in note and "jhash" in note for note in assessment.facts.assumed
    )
