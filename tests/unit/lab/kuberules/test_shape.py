"""Clusters of a wanted shape: what is in them, that they are repeatable, and that they run."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backends.model.contract import Job
from backends.model.node import node_from_json
from backends.simulator import SimulatorBackend
from harness.corpus.formats.entry import entry_of
from harness.corpus.random.flows import random_flows
from tests.lab.kuberules import Cluster, Protocol, Shape, draw_cluster, kube_proxy_rules
from translate.errors import InputError
from translate.ir import Family
from translate.read import read_ruleset

EVERYTHING = Shape(
    services=30,
    node_ports=6,
    load_balancers=6,
    external_ips=3,
    source_ranges=4,
    external_local=6,
    internal_local=5,
    affinity=4,
    without_endpoints=3,
    udp=4,
    sctp=2,
    masquerade_agent=True,
)


@pytest.fixture(params=Family)
def shape(request: pytest.FixtureRequest) -> Shape:
    return replace(EVERYTHING, family=request.param)


def test_the_counts_are_those_of_the_shape(shape: Shape) -> None:
    services = draw_cluster(replace(shape, base=False)).services
    assert len(services) == 30
    assert sum(bool(s.node_port) for s in services) == 12
    assert sum(bool(s.load_balancer_ips) for s in services) == 6
    assert sum(bool(s.external_ips) for s in services) == 3
    assert sum(bool(s.source_ranges) for s in services) == 4
    assert sum(s.external_local for s in services) == 6
    assert sum(s.internal_local for s in services) == 5
    assert sum(bool(s.affinity) for s in services) == 4
    assert sum(not s.endpoints for s in services) == 3
    assert sum(s.protocol is Protocol.UDP for s in services) == 4
    assert sum(s.protocol is Protocol.SCTP for s in services) == 2
    assert {len(s.endpoints) for s in services} == {0, 3}


def test_addresses_are_distinct_and_where_the_node_says(shape: Shape) -> None:
    cluster = draw_cluster(replace(shape, base=False))
    pods = [e for s in cluster.services for e in s.endpoints]
    assert len({e.address for e in pods}) == len(pods)
    assert len({s.cluster_ip for s in cluster.services}) == len(cluster.services)
    for pod in pods:
        assert pod.address in cluster.pods
        assert entry_of(cluster.node, cluster.family, pod.address) == ("cni0" if pod.local else "eth0")
    assert entry_of(cluster.node, cluster.family, cluster.node_ip) is None


def test_services_with_a_local_policy_have_none_one_and_two_local_endpoints(shape: Shape) -> None:
    full = replace(shape, without_endpoints=0)
    choosy = [s for s in draw_cluster(full).services if s.external_local or s.internal_local]
    assert {len(s.local_endpoints) for s in choosy} == {0, 1, 2}


def test_source_ranges_hold_the_node_of_some_services(shape: Shape) -> None:
    cluster = draw_cluster(shape)
    ranged = [s for s in cluster.services if s.source_ranges]
    assert {any(cluster.node_ip in r for r in s.source_ranges) for s in ranged} == {True, False}


def test_the_same_shape_draws_the_same_rules(shape: Shape) -> None:
    text = kube_proxy_rules(draw_cluster(shape))
    assert kube_proxy_rules(draw_cluster(shape)) == text
    assert kube_proxy_rules(draw_cluster(replace(shape, seed=2))) != text


def test_the_simulator_runs_the_rules_on_the_node(shape: Shape) -> None:
    cluster = draw_cluster(shape)
    ruleset = read_ruleset(kube_proxy_rules(cluster).encode(), name="rules", family=shape.family)
    job = Job(rules=ruleset, node=cluster.node)
    flows = tuple(random_flows(ruleset, cluster.node, count=200, seed=1))
    with SimulatorBackend().open(job) as session:
        verdicts = {o.verdict for r in session.replay(flows) for b in r.branches for o in b.outcomes}
    assert len(verdicts) >= 3


def test_a_large_cluster_has_no_comments_at_endpoints() -> None:
    cluster: Cluster = draw_cluster(Shape(services=400, endpoints=3))
    assert not cluster.with_comments
    assert draw_cluster(Shape(services=10)).with_comments


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"services": 3, "node_ports": 4}, "node_ports"),
        ({"source_ranges": 1}, "source_ranges: 1 is not between 0 and 0"),
        ({"services": 100_000, "endpoints": 5}, "endpoints"),
        ({"udp": -1}, "udp and sctp"),
    ],
)
def test_counts_that_do_not_fit_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        draw_cluster(Shape(**wrong))


def test_the_command_prints_rules_and_writes_the_node(tmp_path: Path) -> None:
    node = tmp_path / "node.json"
    words = [sys.executable, "-m", "tests.lab.kuberules", "--family", "ip6", "--services", "4", "--no-base"]
    done = subprocess.run([*words, "--node", str(node)], capture_output=True, text=True, check=True)
    shape = Shape(family=Family.IP6, services=4, base=False)
    assert done.stdout == kube_proxy_rules(draw_cluster(shape))
    assert node_from_json(node.read_text(), name="node.json") == draw_cluster(shape).node
    done = subprocess.run([*words, "--affinity", "5"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "affinity: 5 is not between 0 and 4" in done.stderr
