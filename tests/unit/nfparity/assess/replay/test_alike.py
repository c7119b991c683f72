"""Services of one kind are tested by two of them, with the results of testing each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

import pytest

from backends.model.contract import Backend, Job
from backends.model.flow import Flow, IcmpError
from backends.model.outcome import FlowResult
from backends.simulator import Simulation
from harness.corpus.generate import generate_corpus
from nfparity.assess.assessing import Assessment, assess, detector_flows
from nfparity.assess.node.facts import Facts, gather
from nfparity.assess.node.nativetests import NO_TESTS, NativeTests
from nfparity.assess.replay.alike import FEWEST, FlowClass, Kinds, flow_classes
from nfparity.kubeproxy import recover
from tests.lab.kuberules import Cluster, Shape, draw_cluster, kube_proxy_rules
from tests.unit.nfparity.assess.replay.helpers.countingbackend import CountingBackend
from translate.ir import Interval
from translate.read import read_ruleset

SHAPE = Shape(
    services=40,
    endpoints=2,
    node_ports=26,
    load_balancers=6,
    source_ranges=3,
    external_local=3,
    internal_local=3,
    without_endpoints=3,
    udp=4,
)
SMALLER = replace(SHAPE, services=18, node_ports=11)
"""For a corpus, which takes long to make and to run: there are fewer services in a class."""


@cache
def cluster(shape: Shape = SHAPE) -> Cluster:
    return draw_cluster(shape)


@cache
def text(shape: Shape = SHAPE) -> str:
    return kube_proxy_rules(cluster(shape))


@cache
def facts(shape: Shape = SHAPE) -> Facts:
    ruleset = read_ruleset(text(shape).encode(), name="rules")
    return gather(ruleset, cluster(shape).node, recover(ruleset), version=(1, 36))


def side(rules: str) -> CountingBackend:
    return CountingBackend(read_ruleset(rules.encode(), name="then"))


@cache
def corpus() -> tuple[Flow, ...]:
    known = facts(SMALLER)
    return generate_corpus(Job(rules=known.ruleset, node=known.node), seed=0).flows


def assessed(before: Backend, after: Backend, *, by_class: bool, corpus: tuple[Flow, ...] = ()) -> Assessment:
    """Return the findings of the detectors' flows, or of a corpus."""
    known = facts(SMALLER) if corpus else facts()
    return assess(
        known,
        before=before,
        after=after,
        corpus=corpus,
        only=[flow.id for flow in corpus] or detector_flows(known)[0],
        by_class=by_class,
        progress=lambda name, done, total: None,
    )


def without(rules: str, part: str) -> str:
    """The rules without those that have a part."""
    return "".join(line for line in rules.splitlines(keepends=True) if part not in line)


def of_one(rules: str, change: Callable[[str], str], part: str) -> str:
    """The rules with a change of the rule in the middle of those with a part."""
    lines = rules.splitlines(keepends=True)
    places = [i for i, line in enumerate(lines) if part in line]
    place = places[len(places) // 2]
    lines[place] = change(lines[place])
    return "".join(lines)


AFTERWARDS: dict[str, Callable[[str], str]] = {
    "the same": lambda rules: rules,
    "no masquerade of hairpins": lambda rules: without(rules, "-j KUBE-MARK-MASQ"),
    "no refusals": lambda rules: without(rules, "-j REJECT"),
    "no node ports": lambda rules: without(rules, "-j KUBE-NODEPORTS"),
    "one endpoint of one service elsewhere": lambda rules: of_one(
        rules,
        lambda line: line[: line.index("--to-destination")] + "--to-destination 10.9.9.9:9\n",
        "--to-destination",
    ),
    "one service refused": lambda rules: of_one(
        rules, lambda line: line[: line.index(" -j ")] + " -j KUBE-MARK-MASQ\n", "cluster IP"
    ),
}


AT_ONCE = ("no node ports", "one endpoint of one service elsewhere", "one service refused")
"""The changes that ``make test`` takes."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in AT_ONCE else [pytest.mark.slow]) for name in AFTERWARDS],
)
def test_a_class_shows_what_each_of_its_flows_shows(name: str) -> None:
    afterwards = AFTERWARDS[name](text())
    whole, some = (assessed(side(text()), side(afterwards), by_class=by_class) for by_class in (False, True))
    assert some.findings == whole.findings
    assert some.unexplained == whole.unexplained
    assert some.leaks == whole.leaks
    assert some.disputed == whole.disputed
    assert some.checked == whole.checked
    assert some.changes


def test_a_class_is_run_less_often() -> None:
    """Of flows to node ports, which go to one of two endpoints: two of a class until both are seen."""
    runs = []
    for by_class in (False, True):
        after = side(without(text(), "-j REJECT"))
        assessed(side(text()), after, by_class=by_class)
        runs.append(after.runs.total())
    assert runs[1] < runs[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one endpoint of one service elsewhere", "no masquerade of hairpins"])
def test_flows_of_a_corpus_are_in_classes_too(name: str) -> None:
    runs, assessments = [], []
    for by_class in (False, True):
        rules = text(SMALLER)
        after = side(AFTERWARDS[name](rules))
        assessments.append(assessed(side(rules), after, by_class=by_class, corpus=corpus()))
        runs.append(after.runs.total())
    whole, some = assessments
    assert (some.findings, some.unexplained) == (whole.findings, whole.unexplained)
    assert some.changes
    assert runs[1] < runs[0]


@cache
def first_packets() -> dict[str, FlowResult]:
    """The simulated results of the detectors' flows of one packet."""
    flows = [flow for flow in detector_flows(facts())[0].values() if len(flow.steps) == 1]
    simulation = Simulation(Job(rules=facts().ruleset, node=facts().node))
    return {flow.id: simulation.simulate(flow) for flow in flows}


def classes(flows: Iterable[Flow], native: NativeTests = NO_TESTS) -> tuple[FlowClass, ...]:
    flows = [flow for flow in flows if len(flow.steps) == 1]
    return flow_classes(replace(facts(), native_tests=native), flows, first_packets())


def test_classes_are_large_and_apart() -> None:
    found = classes(detector_flows(facts())[0].values())
    ids = [i for one in found for i in (one.first, one.last, *(i for i, _ in one.others))]
    assert len(ids) == len(set(ids)) > 100
    assert all(len(one.others) + 2 >= FEWEST for one in found)


def test_flows_of_one_class_are_of_one_difference_and_one_kind_of_client() -> None:
    for one in classes(detector_flows(facts())[0].values()):
        names = [i.split("/") for i in (one.first, one.last, *(i for i, _ in one.others))]
        assert len({name[0] for name in names}) == 1
        assert len({name[-1] for name in names if name[-1] in ("inside", "outside", "node")}) < 2


def test_flows_of_one_class_send_equal_packets_apart_from_constants() -> None:
    by_id = {flow.id: flow for flow in corpus() if len(flow.steps) == 1}
    known = facts(SMALLER)
    simulation = Simulation(Job(rules=known.ruleset, node=known.node))
    found = flow_classes(known, list(by_id.values()), {i: simulation.simulate(f) for i, f in by_id.items()})
    assert len(found) > 12
    for one in found:
        first, *others = (by_id[i].first for i in (one.first, one.last, *(i for i, _ in one.others)))
        for other in others:
            assert other.entry == first.entry
            same = replace(
                other.packet,
                src=first.packet.src,
                dst=first.packet.dst,
                sport=first.packet.sport,
                dport=first.packet.dport,
            )
            assert same == first.packet


def test_flows_with_icmp_errors_are_in_classes_of_ports_in_one_range() -> None:
    """An error quotes constants of its service. After it, the kernel may replace a service's port."""
    known = facts(SMALLER)
    flows = {f.id: f for f in corpus() if any(isinstance(step, IcmpError) for step in f.steps)}
    simulation = Simulation(Job(rules=known.ruleset, node=known.node))
    found = flow_classes(known, list(flows.values()), {i: simulation.simulate(f) for i, f in flows.items()})
    assert found
    for one in found:
        ports = [flows[i].first.packet.dport for i in member_ids(one)]
        assert len({isinstance(port, int) and (port >= 512, port >= 1024) for port in ports}) == 1


def test_a_flow_that_goes_on_to_another_service_is_in_no_class() -> None:
    kinds = Kinds(facts(SMALLER))
    flow, other = [f for f in corpus() if f.id.endswith("-inside") and kinds.of(f) is not None][:2]
    assert kinds.of(replace(flow, steps=(*flow.steps, flow.first))) is not None
    assert kinds.of(replace(flow, steps=(*flow.steps, other.first))) is None


def member_ids(flow_class: FlowClass) -> tuple[str, ...]:
    return (flow_class.first, *(i for i, _ in flow_class.others), flow_class.last)


def large_class() -> tuple[str, ...]:
    """The flows of the largest class of flows to ClusterIPs."""
    by_id = detector_flows(facts())[0]
    found = [
        ids
        for ids in map(member_ids, classes(by_id.values()))
        if all(facts().by_cluster_ip(by_id[i].first.packet) is not None for i in ids)
    ]
    return max(found, key=len)


def services_of(ids: Iterable[str]) -> list[tuple[int, int]]:
    """The address and port of each flow."""
    packets = [detector_flows(facts())[0][i].first.packet for i in ids]
    return [(packet.dst, packet.dport) for packet in packets if isinstance(packet.dport, int)]


def by_address(places: list[tuple[int, int]]) -> NativeTests:
    return NativeTests(addresses={None: (Interval.point(places[0][0]),)})


def by_prefix(places: list[tuple[int, int]]) -> NativeTests:
    low, high = sorted(address for address, _ in places)
    return NativeTests(addresses={None: (Interval(low, high),)})


def by_mask(places: list[tuple[int, int]]) -> NativeTests:
    return NativeTests(addresses={0xFFF: (Interval.point(places[0][0] & 0xFFF),)})


@pytest.mark.parametrize(("constants", "number"), [(by_address, 1), (by_prefix, 2), (by_mask, 1)])
def test_constants_of_a_table_separate_those_whom_it_treats_differently(
    constants: Callable[[list[tuple[int, int]]], NativeTests], number: int
) -> None:
    ids = large_class()
    places = sorted({*services_of(ids)})
    planted = places[len(places) // 2 :][:number]
    treated = {i for i in ids if services_of([i])[0] in planted}
    assert len(places) > number + FEWEST
    found = [
        {*member_ids(one)} & {*ids}
        for one in classes(detector_flows(facts())[0].values(), constants(planted))
    ]
    assert {*ids} - treated in found
    assert not any(group & treated and group - treated for group in found)


def test_a_port_of_a_table_separates_node_ports() -> None:
    flows = detector_flows(facts())[0]
    groups = [
        ids
        for ids in map(member_ids, classes(flows.values()))
        if facts().by_node_port(flows[ids[0]].first.packet) is not None
    ]
    ids = max(groups, key=len)
    planted = ids[len(ids) // 2]
    port = flows[planted].first.packet.dport
    assert isinstance(port, int)
    native = NativeTests(ports={None: (Interval.point(port),)})
    rest = {*ids} - {i for i in ids if flows[i].first.packet.dport == port}
    found = [{*member_ids(one)} for one in classes(flows.values(), native)]
    assert rest in found
    assert not any(planted in group for group in found)


def test_lookups_of_routes_separate_addresses_of_other_routes() -> None:
    plain, looked_up = (
        Kinds(replace(facts(), native_tests=NativeTests(routes=routes))) for routes in (False, True)
    )
    flow = next(f for f in detector_flows(facts())[0].values() if facts().by_cluster_ip(f.first.packet))
    broadcast = max(a.network.high for i in facts().node.interfaces for a in i.addresses)
    packet = flow.first.packet
    moved = replace(flow, steps=(replace(flow.first, packet=replace(packet, src=broadcast)),))
    beside = replace(flow, steps=(replace(flow.first, packet=replace(packet, src=broadcast - 1)),))
    keys = [[kinds.of(each) for each in (moved, beside)] for kinds in (plain, looked_up)]
    assert all(key is not None for pair in keys for key in pair)
    same = [first[0] == second[0] for first, second in keys if first is not None and second is not None]
    assert same == [True, False]
