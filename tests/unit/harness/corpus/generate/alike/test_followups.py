"""The flows of members that are not searched that the trial of a plan leaves out."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow
from harness.corpus.generate import generate_flows
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.alike.classes import Classes
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from translate.ir import Family, Interval, format_address
from translate.read import read_ruleset


def job_of(shape: Shape, *before: str) -> Job:
    cluster = draw_cluster(shape)
    text = kube_proxy_rules(cluster)
    for rule in before:
        text = text.replace("\n-A PREROUTING", f"\n{rule}\n-A PREROUTING", 1)
    return Job(rules=read_ruleset(text.encode(), name="rules", family=shape.family), node=cluster.node)


def divided(job: Job) -> tuple[list[Flow], list[Flow]]:
    """The flows that a trial has, and those that it leaves out."""
    whole, trial = generate_flows(job, seed=0), generate_flows(job, seed=0, fewer=True)
    left = {flow.steps for flow in trial.flows}
    assert left <= {flow.steps for flow in whole.flows}
    left_out = [flow for flow in whole.flows if flow.steps not in left]
    assert {flow.id for flow in left_out} <= whole.alike
    return list(trial.flows), left_out


def opening(flow: Flow) -> tuple[object, ...]:
    return replace(flow.first.packet, sport=None), flow.first.entry


def entrance(flow: Flow) -> tuple[object, ...]:
    packet = flow.first.packet
    return flow.first.entry is None, packet.proto, packet.dst, packet.dport


def borrowed(flow: Flow, job: Job) -> bool:
    """Return whether the node sends the flow from an address that is not its own."""
    places = Places.of(job.ruleset, job.node)
    return flow.first.entry is None and places.behind(flow.first.packet.src) is not None


def at_a_limit(flow: Flow) -> bool:
    return flow.why.startswith("at a limit")


def test_their_first_packet_is_sent_and_one_connection_goes_on_at_each_entrance() -> None:
    job = job_of(Shape(services=9, endpoints=2, base=False, seed=3))
    others = [m for c in Classes.of(job.ruleset, Places.of(job.ruleset, job.node)).classes for m in c.others]
    left, left_out = divided(job)
    follow_ups = [f for f in left_out if not at_a_limit(f) and not borrowed(f, job)]
    assert len(follow_ups) >= 2 * len(others) > 0
    assert all(len(flow.steps) > 1 for flow in follow_ups)
    assert {opening(flow) for flow in follow_ups} <= {opening(flow) for flow in left if len(flow.steps) == 1}
    assert {entrance(flow) for flow in follow_ups} <= {entrance(flow) for flow in left if len(flow.steps) > 1}


def test_packets_from_addresses_of_others_are_received_where_the_node_does_not_send_them() -> None:
    job = job_of(Shape(services=9, endpoints=2, base=False, seed=3))
    left, left_out = divided(job)
    sent = [flow for flow in left_out if borrowed(flow, job)]
    assert sent
    received = {flow.first.packet for flow in left if flow.first.entry is not None}
    assert {replace(flow.first.packet, sport=None) for flow in sent} <= {
        replace(packet, sport=None) for packet in received
    }
    assert any(borrowed(flow, job) for flow in left), "services that are searched have them"


def test_what_endpoints_on_the_host_network_send_is_sent() -> None:
    """Their address is the node's own."""
    cluster = draw_cluster(Shape(services=24, endpoints=1, base=False, seed=3))
    own = {a.value for i in cluster.node.interfaces for a in i.addresses}
    node = format_address(Family.IP, min(own))
    text = kube_proxy_rules(cluster)
    pods = sorted(set(re.findall(r"--to-destination (\S+):", text)))
    for pod in pods[6:18]:
        text = re.sub(rf"\b{re.escape(pod)}\b", node, text)
    job = Job(rules=read_ruleset(text.encode(), name="rules"), node=cluster.node)
    left, left_out = divided(job)
    classes = Classes.of(job.ruleset, Places.of(job.ruleset, job.node)).classes
    hosts = [m for of in classes for m in of.others if own & {_first(c.value) for c in m.constants}]
    assert hosts
    made = [f.first.packet for f in left if f.first.entry is None and f.first.packet.src in own]
    assert {_first(address) for m in hosts for address, *_ in m.keys} <= {packet.dst for packet in made}
    assert not [f for f in left_out if len(f.steps) == 1 and f.first.packet.src in own]


def _first(value: object) -> int | None:
    return value.low if isinstance(value, Interval) else None


@pytest.mark.parametrize(
    "shape",
    [
        Shape(services=9, endpoints=2, affinity=9, base=False, seed=3),
        Shape(services=9, endpoints=1, without_endpoints=9, base=False, seed=3),
    ],
    ids=["lists", "filter"],
)
def test_members_that_later_packets_may_meet_have_none(shape: Shape) -> None:
    job = job_of(shape)
    _, left_out = divided(job)
    assert not [flow for flow in left_out if not at_a_limit(flow) and not borrowed(flow, job)]


def test_ends_of_common_ranges_are_those_that_searched_members_have_too() -> None:
    job = job_of(Shape(services=9, endpoints=2, source_ranges=4, load_balancers=4, base=False, seed=3))
    left, left_out = divided(job)
    classes = Classes.of(job.ruleset, Places.of(job.ruleset, job.node)).classes
    targets = {
        address.low
        for group in classes
        for member in group.others
        for address, _, _ in member.keys
        if address is not None
    }
    ends = [flow for flow in left_out if at_a_limit(flow)]
    assert ends
    assert {flow.first.packet.dst for flow in ends} <= targets
    sources = {flow.first.packet.src for flow in ends}
    assert sources <= {flow.first.packet.src for flow in left if at_a_limit(flow)}, (
        "a searched member has them"
    )


def test_flows_from_another_port_are_sent_where_rules_read_ports() -> None:
    shape = Shape(services=9, endpoints=2, base=False, seed=3)
    _, left_out = divided(job_of(shape))
    _, reading = divided(job_of(shape, "-A PREROUTING -p tcp -m tcp --sport 99 -j RETURN"))
    assert 0 < len(reading) < len(left_out)
