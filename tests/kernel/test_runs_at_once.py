"""Runs of a flow at the same time take the same paths as runs one after the other, on each backend."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from backends.model.clock import at_present
from backends.model.contract import Job
from backends.model.flow import Flow, Repeated
from backends.model.outcome import FlowResult
from backends.model.sourceports import port_boundaries, ports_alike
from backends.replay.runs_at_once import can_run_at_once
from backends.simulator import SimulatorBackend
from harness.corpus.generate import generate_corpus
from harness.diff.backends import backend
from harness.diff.paths import normal_paths, path_key
from harness.diff.sampling import CERTAIN
from tests.kernel.helpers.availability import require
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from tests.lab.random.clientports import job_with_client_ports
from translate.ir import Family
from translate.read import read_ruleset

SHAPE = Shape(services=5, endpoints=2, udp=2, node_ports=1, load_balancers=1, without_endpoints=1)


@cache
def chancy(family: Family) -> tuple[Job, tuple[Flow, ...], tuple[FlowResult, ...]]:
    """Return flows with random outcomes that can run at once, and their expected results."""
    cluster = draw_cluster(replace(SHAPE, family=family))
    rules = read_ruleset(kube_proxy_rules(cluster).encode(), name="rules", family=family)
    assert port_boundaries(rules) is not None
    job = Job(rules=rules, node=cluster.node)
    flows = [at_present(flow) for flow in generate_corpus(job, seed=1, exhaustive=True).flows]
    with SimulatorBackend().open(job) as reference:
        results = list(reference.replay(flows))
    chosen = [
        (flow, result)
        for flow, result in zip(flows, results, strict=True)
        if len(result.branches) > 1 and not (result.lists or result.dependent) and can_run_at_once(flow)
    ]
    assert {len(flow.steps) for flow, _ in chosen} > {1, 3}
    assert {flow.first.packet.proto for flow, _ in chosen} == {6, 17}
    assert {flow.first.entry is None for flow, _ in chosen} == {True, False}
    return job, tuple(flow for flow, _ in chosen), tuple(result for _, result in chosen)


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("name", ["iptables-legacy", "iptables-nft", "nftables", "tc-ebpf"])
def test_runs_at_once_come_to_the_paths_of_runs_one_by_one(name: str, family: Family) -> None:
    require(backend(name))
    job, flows, expected = chancy(family)
    times = [CERTAIN.first_runs(flow, result) for flow, result in zip(flows, expected, strict=True)]
    paths = []
    with backend(name).open(job) as session:
        for ports in (range(1 << 16), range(0)):
            requests = [
                Repeated(flow, number, lists=False, ports=ports)
                for flow, number in zip(flows, times, strict=True)
            ]
            results = list(session.replay(requests))
            assert [result.runs for result in results] == times
            assert not [result.notes for result in results if result.notes]
            differing = [
                flow.id
                for flow, wanted, result in zip(flows, expected, results, strict=True)
                if CERTAIN.differing(flow, wanted, result)
            ]
            assert not differing
            paths.append(
                [
                    {
                        path_key(flow, path.outcomes)
                        for path in normal_paths(flow, r.branches, runs=r.runs, expected=wanted)
                    }
                    for flow, wanted, r in zip(flows, expected, results, strict=True)
                ]
            )
    assert paths[0] == paths[1]


@pytest.mark.parametrize("name", ["iptables-legacy", "nftables"])
@pytest.mark.parametrize("seed", range(8, 16))  # three need the ends of tests, four those of NAT
def test_ports_that_rules_distinguish_from_that_of_the_flow_are_not_used(seed: int, name: str) -> None:
    require(backend(name))
    job, flows = job_with_client_ports(seed)
    boundaries = port_boundaries(job.ruleset)
    assert boundaries is not None
    with SimulatorBackend().open(job) as reference:
        expected = list(reference.replay(flows))
    requests = []
    for flow, result in zip(flows, expected, strict=True):
        port = flow.first.packet.sport
        assert isinstance(port, int)
        times = CERTAIN.first_runs(flow, result)
        requests.append(Repeated(flow, times, lists=False, ports=ports_alike(port, boundaries)))
    with backend(name).open(job) as session:
        results = list(session.replay(requests))
    differing = [
        flow.id
        for flow, wanted, result in zip(flows, expected, results, strict=True)
        if CERTAIN.differing(flow, wanted, result)
    ]
    assert not differing
