"""Rulesets of kube-proxy's nftables mode, loaded: as a real one's on this kernel, and of any cluster."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backends.given_nftables.backend import GivenNftBackend
from backends.model.contract import Job
from backends.simulator import SimulatorBackend
from backends.testbed.command import find_tool
from harness.diff.compare import compare
from nfparity.kubeproxy import recover
from nfparity.kubeproxy.nftables import LAYOUTS, InferredConfig, nftables_mode
from tests.kernel.helpers.availability import require
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules, service_uses
from translate.ir import Family, Ruleset, parse_address
from translate.read import read_ruleset

REAL = Path(__file__).parents[1] / "corpus/rulesets/kube-real"
MIXED = Shape(
    services=24,
    node_ports=8,
    load_balancers=6,
    source_ranges=4,
    external_local=7,
    internal_local=5,
    external_ips=4,
    affinity=6,
    without_endpoints=5,
    udp=4,
    sctp=2,
)


def listed(text: str) -> Any:
    """Load a script into a namespace of its own, and return what nft lists of it."""
    for tool in ("unshare", "nft"):
        if find_tool(tool) is None:
            pytest.skip(f"needs {tool}")
    script = "nft -f - && nft -j list ruleset"
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", script],
        input=text.encode(),
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)["nftables"]


def content(objects: Any) -> list[str]:
    """The objects without handles, elements sorted; rules keep their order within a chain."""
    plain: list[str] = []
    places: dict[str, int] = {}
    for one in objects:
        ((kind, value),) = one.items()
        if kind == "metainfo":
            continue
        value.pop("handle", None)
        if "elem" in value:
            value["elem"] = sorted(json.dumps(e, sort_keys=True) for e in value["elem"])
        number = 0
        if kind == "rule":
            number = places[value["chain"]] = places.get(value["chain"], 0) + 1
        plain.append(json.dumps([kind, number, value], sort_keys=True))
    return sorted(plain)


def rules(name: str) -> Ruleset:
    return read_ruleset((REAL / name).read_bytes(), name=name)


def test_the_kernel_holds_what_it_holds_of_a_real_kube_proxy() -> None:
    config = InferredConfig(node_port_ips=(parse_address(Family.IP, "192.168.0.2"),))
    ours = nftables_mode(recover(rules("rules.iptables-save")), "1.30", config=config)
    theirs = (REAL / "realistic.nft-input").read_text()
    held = content(listed(theirs))
    assert len(held) > 200
    assert content(listed(ours.text)) == held


@pytest.mark.parametrize("version", tuple(LAYOUTS))
@pytest.mark.parametrize("family", tuple(Family))
def test_every_version_loads(version: str, family: Family) -> None:
    cluster = draw_cluster(replace(MIXED, family=family))
    state = recover(read_ruleset(kube_proxy_rules(cluster).encode(), name="rules", family=family))
    mode = nftables_mode(state, version, cluster.node)
    held = listed(mode.text)
    chains = {o["chain"]["name"] for o in held if "chain" in o}
    assert sum(c.startswith("external-") for c in chains) > 5
    assert sum(c.startswith("firewall-") for c in chains) > 1
    # Read by iptables' tools or not, nothing but this one table is there.
    assert {o["table"]["name"] for o in held if "table" in o} == {"kube-proxy"}


@pytest.mark.parametrize(
    "shape",
    [
        Shape(services=6, base=False, masquerade_all=True, node_ports=3),
        Shape(services=40, endpoints=40, affinity=2, seed=4),
        Shape(services=5, without_endpoints=5, node_ports=2, load_balancers=2, base=False),
    ],
)
@pytest.mark.parametrize("version", ["1.30", "1.36"])
def test_drawn_clusters_load_also_without_names_and_node(shape: Shape, version: str) -> None:
    text = kube_proxy_rules(draw_cluster(shape))
    bare = "\n".join(
        line.partition(' -m comment --comment "')[0] + _behind(line) for line in text.splitlines()
    )
    state = recover(read_ruleset(f"{bare}\n".encode(), name="rules"))
    assert all(s.name is None for s in state.services)
    assert listed(nftables_mode(state, version).text)


def _behind(line: str) -> str:
    """Return the text after the comment of a rule."""
    return line.rpartition('"')[2] if "--comment" in line else ""


LOCALHOST = {
    ("localhost", "reject", "local"),
    ("localhost", "drop", "local"),
    ("localhost", "forward", "local"),
    ("localhost", "local", "local"),
}
"""K02: a node port at 127.0.0.1 is nobody's in the nftables mode."""
REFUSED_HERE = {("node", "forward", "reject")}
"""K16: what the node sends to an external address without endpoints leaves it today."""
DROPPED_HERE = {("node", "forward", "drop")}
"""K24: policy Local and no endpoint here; until 1.34 the check stands in front of DNAT in output."""


@pytest.mark.parametrize("family", tuple(Family))
@pytest.mark.parametrize("version", ["1.30", "1.34", "1.36"])
def test_packets_part_only_where_the_modes_are_known_to(version: str, family: Family) -> None:
    """Every service from a pod, from outside, from the node, and from an endpoint of its own.

    An endpoint of another node may draw itself, which nobody masquerades from 1.36 on (K20).
    """
    cluster = draw_cluster(replace(MIXED, family=family))
    ruleset = read_ruleset(kube_proxy_rules(cluster).encode(), name="rules", family=family)
    mode = nftables_mode(recover(ruleset), version, cluster.node)
    given = GivenNftBackend("nftables mode", mode.text)
    require(given)
    job = Job(rules=ruleset, node=cluster.node, level=0)
    flows = list(service_uses(cluster))
    with SimulatorBackend().open(job) as today, given.open(job) as then:
        results = zip(flows, today.replay(flows), then.replay(flows), strict=True)
        differing = [(f, m[0]) for f, e, o in results if (m := compare(f, e, o))]
    assert len(flows) > 150
    known = REFUSED_HERE | (DROPPED_HERE if version == "1.30" else set())
    elsewhere = {e.address for s in cluster.services for e in s.endpoints if not e.local}
    if version == "1.36":
        differing = [(f, m) for f, m in differing if f.first.packet.src not in elsewhere]
    who = {(f.id.rpartition("/")[2], str(m.expected), str(m.observed)) for f, m in differing}
    assert {one for one in who if one[0] != "localhost"} == known
    at_localhost = {one for one in who if one[0] == "localhost"}
    assert at_localhost <= LOCALHOST
    assert bool(at_localhost) is (family is Family.IP)
