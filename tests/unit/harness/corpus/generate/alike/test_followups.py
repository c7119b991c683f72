"""Flows of other members that repeat the first packet of another flow."""

from __future__ import annotations

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow
from backends.model.withfields import with_fields
from harness.corpus.generate import GeneratedCorpus, generate_corpus
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.alike.classes import Classes
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from translate.read import read_ruleset


def made(shape: Shape, *before: str) -> tuple[Job, GeneratedCorpus]:
    cluster = draw_cluster(shape)
    text = kube_proxy_rules(cluster)
    for rule in before:
        text = text.replace("\n-A PREROUTING", f"\n{rule}\n-A PREROUTING", 1)
    job = Job(rules=read_ruleset(text.encode(), name="rules", family=shape.family), node=cluster.node)
    return job, generate_corpus(job, seed=0)


def opening(flow: Flow) -> tuple[object, ...]:
    return with_fields(flow.first.packet, sport=None), flow.first.entry


def entrance(flow: Flow) -> tuple[object, ...]:
    packet = flow.first.packet
    return flow.first.entry is None, packet.proto, packet.dst, packet.dport


def test_their_first_packet_is_sent_and_one_connection_goes_on_at_each_entrance() -> None:
    job, corpus = made(Shape(services=9, endpoints=2, base=False, seed=3))
    others = [m for c in Classes.of(job.ruleset, Places.of(job.ruleset, job.node)).classes for m in c.others]
    follow_ups = [flow for flow in corpus.flows if flow.id in corpus.follow_ups]
    left = [flow for flow in corpus.flows if flow.id not in corpus.follow_ups]
    assert len(follow_ups) >= 2 * len(others) > 0
    assert corpus.follow_ups <= corpus.alike
    assert all(len(flow.steps) > 1 for flow in follow_ups)
    assert {opening(flow) for flow in follow_ups} <= {opening(flow) for flow in left if len(flow.steps) == 1}
    assert {entrance(flow) for flow in follow_ups} <= {entrance(flow) for flow in left if len(flow.steps) > 1}


@pytest.mark.parametrize(
    "shape",
    [
        Shape(services=9, endpoints=2, affinity=9, base=False, seed=3),
        Shape(services=9, endpoints=1, without_endpoints=9, base=False, seed=3),
    ],
    ids=["lists", "filter"],
)
def test_members_that_later_packets_may_meet_have_none(shape: Shape) -> None:
    _, corpus = made(shape)
    assert corpus.alike
    assert not corpus.follow_ups


def test_ends_of_common_ranges_are_those_that_searched_members_have_too() -> None:
    job, corpus = made(Shape(services=9, endpoints=2, source_ranges=4, load_balancers=4, base=False, seed=3))
    ends = {flow.id: flow for flow in corpus.flows if flow.why.startswith("at a limit")}
    classes = Classes.of(job.ruleset, Places.of(job.ruleset, job.node)).classes
    targets = {
        address.low
        for group in classes
        for member in group.others
        for address, _, _ in member.keys
        if address is not None
    }
    assert corpus.common_limits
    assert corpus.common_limits <= ends.keys() & corpus.alike
    assert {ends[name].first.packet.dst for name in corpus.common_limits} <= targets
    left = [flow for name, flow in ends.items() if name not in corpus.common_limits]
    sources = {ends[name].first.packet.src for name in corpus.common_limits}
    assert sources <= {flow.first.packet.src for flow in left}, "a searched member has them"


def test_flows_from_another_port_are_none_where_rules_read_ports() -> None:
    shape = Shape(services=9, endpoints=2, base=False, seed=3)
    _, corpus = made(shape)
    _, reading = made(shape, "-A PREROUTING -p tcp -m tcp --sport 99 -j RETURN")
    assert 0 < len(reading.follow_ups) < len(corpus.follow_ups)
