"""The nodes of one cluster."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.files.errors import CaptureError
from nfparity.kubeproxy import recover
from nfparity.snapshot import load_snapshot
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from tests.lab.kuberules.pernode import at_node, write_fleet
from translate.ir import Family

SHAPE = Shape(services=12, endpoints=3, node_ports=2, external_local=1, internal_local=2)


@pytest.fixture(params=Family)
def shape(request: pytest.FixtureRequest) -> Shape:
    return replace(SHAPE, family=request.param)


def test_the_first_node_is_the_one_that_was_drawn(shape: Shape) -> None:
    cluster = draw_cluster(shape)
    assert at_node(cluster, 0) == cluster


def test_nodes_have_the_same_services_and_endpoints_and_other_addresses(shape: Shape) -> None:
    cluster = draw_cluster(shape)
    nodes = [at_node(cluster, n) for n in range(5)]
    assert len({one.node_ip for one in nodes}) == 5
    for one in nodes:
        uplink, bridge = one.node.interfaces
        assert uplink.addresses[0].value == one.node_ip
        own = bridge.addresses[0].network
        assert not [r for r in one.node.routes[1:] if own.low in r.dst or r.via == one.node_ip]
        for mine, theirs in zip(one.services, cluster.services, strict=True):
            assert [e.address for e in mine.endpoints] == [e.address for e in theirs.endpoints]
            assert all(e.local == (e.address in own) for e in mine.endpoints)
    assert kube_proxy_rules(nodes[0]) != kube_proxy_rules(nodes[1])


def test_a_fleet_reads_as_snapshots_of_its_nodes(shape: Shape, tmp_path: Path) -> None:
    cluster = draw_cluster(shape)
    paths = list(write_fleet(cluster, tmp_path, 11))
    assert [path.name for path in paths][::10] == ["node-00.tar.gz", "node-10.tar.gz"]
    snapshot = load_snapshot(str(paths[4]))
    there = at_node(cluster, 4)
    assert snapshot.meta["hostname"] == "node-04"
    assert snapshot.node.interfaces == there.node.interfaces
    assert set(there.node.routes) <= set(snapshot.node.routes)
    state = recover(snapshot.ruleset(shape.family))
    assert {s.cluster_ip for s in state.services} >= {s.cluster_ip for s in there.services if s.endpoints}
    with pytest.raises(CaptureError):
        list(write_fleet(cluster, tmp_path, 11))


def test_the_command_writes_snapshots(tmp_path: Path) -> None:
    folder = tmp_path / "nodes"
    words = ("--services", "4", "--node-ports", "1", "--snapshots", str(folder), "--nodes", "2")
    command = (sys.executable, "-m", "tests.lab.kuberules", *words)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(folder / f"node-{n}.tar.gz") for n in range(2)]
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 2
    assert "already exists" in again.stderr
