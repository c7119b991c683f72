"""One flow to each member of a class stands for those of other clients, and finds what is planted there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from backends.model.contract import Backend, Job
from backends.model.flow import Flow
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, Verdict
from backends.simulator import Simulation
from harness.diff.entrances import SharedRuns
from harness.diff.sampling import Share
from nfparity.assess.assessing import Assessment, assess, detector_flows
from nfparity.assess.node.facts import Facts, gather
from nfparity.assess.replay.alike import FlowClass, flow_classes
from nfparity.assess.replay.spared import Spared, flows_that_share_runs, spared_flows, waiting
from nfparity.kubeproxy import recover
from tests.lab.kuberules import Cluster, Shape, draw_cluster, kube_proxy_rules
from tests.unit.nfparity.assess.replay.helpers.countingbackend import CountingBackend
from translate.read import read_ruleset

SHAPE = Shape(services=40, endpoints=2, node_ports=8, load_balancers=3, source_ranges=3)
CLIENTS = ("inside", "outside", "node")


@cache
def cluster() -> Cluster:
    return draw_cluster(SHAPE)


@cache
def text() -> str:
    return kube_proxy_rules(cluster())


@cache
def facts() -> Facts:
    ruleset = read_ruleset(text().encode(), name="rules")
    return gather(ruleset, cluster().node, recover(ruleset), version=(1, 36))


@cache
def flows() -> dict[str, Flow]:
    """The detectors' flows of one packet, to services and to their ClusterIPs."""
    return {i: flow for i, flow in detector_flows(facts())[0].items() if len(flow.steps) == 1}


@cache
def classes() -> tuple[FlowClass, ...]:
    simulation = Simulation(Job(rules=facts().ruleset, node=facts().node))
    expected = {flow_id: simulation.simulate(flow) for flow_id, flow in flows().items()}
    return flow_classes(facts(), tuple(flows().values()), expected)


@cache
def spared() -> dict[str, Spared]:
    return spared_flows(tuple(flows().values()), classes(), ())


def side(rules: str) -> CountingBackend:
    return CountingBackend(read_ruleset(rules.encode(), name="then"))


def assessed(after: Backend, *, by_class: bool) -> Assessment:
    return assess(
        facts(),
        before=side(text()),
        after=after,
        only=flows(),
        by_class=by_class,
        progress=lambda name, done, total: None,
    )


def test_a_spared_flow_differs_from_the_one_that_is_sent_in_its_client_only() -> None:
    assert len(spared()) > 50
    for flow_id, instead in spared().items():
        own, other = (flows()[i].first.packet for i in (flow_id, instead.sent))
        assert own != other
        assert replace(own, src=0) == replace(other, src=0)
        assert flow_id.partition("/")[0] == instead.sent.partition("/")[0]
        assert instead.sent not in spared()


def test_no_flow_that_is_tested_in_full_is_spared() -> None:
    assert spared().keys().isdisjoint(i for group in classes() for i in (group.first, group.last))
    assert all(any(s.first == group.first for group in classes()) for s in spared().values())


def test_clients_take_turns() -> None:
    sent = Counter(instead.sent.rpartition("/")[2] for instead in spared().values())
    assert sent.keys() == {*CLIENTS}
    assert max(sent.values()) < 2 * min(sent.values())


def test_endpoints_and_services_with_source_ranges_are_sent() -> None:
    """K20 is about endpoints that use their own service."""
    addresses = {e.address for s in facts().services for e in s.endpoints}
    assert any(flow_id.startswith("K20/") for flow_id in flows())
    for flow_id in spared():
        packet = flows()[flow_id].first.packet
        assert packet.src not in addresses
        assert not any(s.source_ranges for s in facts().at_cluster_ip(packet.dst))


def test_measured_flows_are_not_spared() -> None:
    assert not spared_flows(tuple(flows().values()), classes(), flows())


def test_flows_wait_for_the_one_that_is_sent() -> None:
    flow_id, instead = next(iter(spared().items()))
    waited = waiting(spared(), {instead.sent})
    assert flow_id in waited
    assert {spared()[i].sent for i in waited} == {instead.sent}


def of_one(part: str, number: int, change: Callable[[str], str]) -> str:
    """The rules with a change of one of those with a part, counted from the middle of them."""
    lines = text().splitlines(keepends=True)
    places = [i for i, line in enumerate(lines) if part in line]
    place = places[len(places) // 2 + number]
    lines[place] = change(lines[place])
    return "".join(lines)


def elsewhere(line: str) -> str:
    return line[: line.index("--to-destination")] + "--to-destination 10.9.9.9:9\n"


def without_effect(line: str) -> str:
    return line[: line.index(" -j ")] + "\n"


def another_address(line: str) -> str:
    """The rule for an address that no service has."""
    before, _, after = line.partition(" -d ")
    return f"{before} -d 10.111.111.111/32 {after.partition(' ')[2]}"


def another_port(line: str) -> str:
    before, _, after = line.partition("--dport ")
    return f"{before}--dport 9 {after.partition(' ')[2]}"


PLANTED = {
    "an endpoint elsewhere": ("--to-destination", elsewhere),
    "no ClusterIP": ('cluster IP" ', without_effect),
    "another ClusterIP": ('cluster IP" ', another_address),
    "another port of a ClusterIP": ('cluster IP" ', another_port),
    "another node port": ("-A KUBE-NODEPORTS", another_port),
    "no node port": ("-A KUBE-NODEPORTS", without_effect),
}


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *((name, 0) for name in PLANTED),
        *(
            pytest.param(name, number, marks=pytest.mark.slow)
            for name, number in (("no ClusterIP", 1), ("no ClusterIP", 2), ("no node port", 1))
        ),
    ],
)
def test_what_is_planted_at_one_member_is_found(name: str, number: int) -> None:
    """At members beside each other, so that each client has its turn."""
    part, change = PLANTED[name]
    rules = of_one(part, number, change)
    assert rules != text()
    after = side(rules)
    whole, some = assessed(side(rules), by_class=False), assessed(after, by_class=True)
    assert some.changes
    assert (some.findings, some.unexplained, some.leaks) == (whole.findings, whole.unexplained, whole.leaks)
    assert some.sides[1][1].keys() == whole.sides[1][1].keys()
    assert len(after.runs) < len(whole.sides[1][1]), "some are spared"


def test_in_iptables_mode_one_client_of_each_choice_shows_every_outcome() -> None:
    simulation = Simulation(Job(rules=facts().ruleset, node=facts().node))
    expected = {flow_id: simulation.simulate(flow) for flow_id, flow in flows().items()}
    chosen = [flow for flow_id, flow in flows().items() if len(expected[flow_id].branches) > 1]
    shared = flows_that_share_runs(tuple(flows().values()), expected)
    brief = shared.briefly
    places = {(f.first.packet.dst, f.first.packet.dport) for f in chosen if f.id not in brief}
    assert len(brief) > len(chosen) // 10
    assert {(flows()[i].first.packet.dst, flows()[i].first.packet.dport) for i in brief} <= places
    assert shared.together.keys() | brief >= {flow.id for flow in chosen}


def test_every_outcome_of_what_may_leave_untranslated_is_seen() -> None:
    flow = next(iter(flows().values()))
    packet = flow.first.packet
    sent = [replace(flow, id=name) for name in "ab"]
    routed = Outcome(verdict=Verdict.FORWARD, out="eth0", src=packet.src, dst=packet.dst)
    translated = replace(routed, dst=packet.dst + 1, dnat=True)
    ways = tuple(OutcomeBranch(Fraction(1, 2), (outcome,)) for outcome in (routed, translated))
    shared = flows_that_share_runs(sent, {name: FlowResult(name, ways) for name in "ab"})
    assert shared == SharedRuns(frozenset(), {"a": Share(2), "b": Share(2)})
