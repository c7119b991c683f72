"""Pods on a secondary interface of an AWS node: the device by which their packets to a service leave.

The CNI marks connections of pods to the world, and a routing rule sends marked packets out of the primary
interface. In the nat table its rules come after kube-proxy's DNAT, which ends the table, unless they were
registered last (aws/amazon-vpc-cni-k8s#3563) or stand first (#3800).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.iptables.backend import IptablesBackend
from backends.model.contract import Backend, Job
from backends.model.node import Node, node_from_json
from backends.model.outcome import Outcome
from backends.simulator.backend import SimulatorBackend
from harness.corpus.formats.jsonlines import read_flows
from nfparity.assess.node.components import IPTABLES
from nfparity.assess.replay.backends import NftablesModeBackend
from tests.kernel.helpers.availability import require
from translate.ir import Family, Ruleset
from translate.nftlisting import read_listing
from translate.read import read_ruleset

FOLDER = Path(__file__).parent.parent / "corpus" / "rulesets" / "aws-vpc-cni"
RULES = (FOLDER / "rules.iptables-save").read_text()
PORTALS = '-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES\n'
JUMP = '-A PREROUTING -i eni+ -m comment --comment "AWS, outbound connections" -j AWS-CONNMARK-CHAIN-0\n'
RESTORE = (
    '-A PREROUTING -m comment --comment "AWS, CONNMARK" -j CONNMARK --restore-mark'
    " --nfmask 0x80 --ctmask 0x80\n"
)
FLOWS = (
    '{"id": "service", "in": "eniaaaa0002", "src": "10.20.3.22", "dst": "172.20.0.80", "proto": "tcp",'
    ' "sport": 40001, "dport": 80, "then": [{"reply": {}}, {"again": {}}]}\n'
    '{"id": "world", "in": "eniaaaa0002", "src": "10.20.3.22", "dst": "198.51.100.7", "proto": "tcp",'
    ' "sport": 40002, "dport": 443, "then": [{"reply": {}}, {"again": {}}]}\n'
)
SECONDARY, PRIMARY = "eth1", "eth0"


def rules_of(text: str) -> Ruleset:
    return read_ruleset(text.encode(), name="rules", family=Family.IP)


def without_kube_proxy() -> str:
    """Return the rules of the CNI alone."""
    lines = RULES.splitlines(keepends=True)
    return "".join(line for line in lines if "KUBE-" not in line)


@pytest.fixture(scope="module")
def node() -> Node:
    return node_from_json((FOLDER / "secondary.json").read_text(), name="secondary.json")


def outcomes(backend: Backend, rules: Ruleset, node: Node) -> dict[str, tuple[Outcome, ...]]:
    """Return what happens to each packet of the flow to a service, and of that to the world."""
    require(backend)
    flows = read_flows(FLOWS.encode(), name="flows", node=node)
    with backend.open(Job(rules=rules, node=node)) as session:
        return {r.flow_id: r.branches[0].outcomes for r in session.replay(flows)}


def left_by(seen: dict[str, tuple[Outcome, ...]]) -> str | None:
    """Return the device by which packets to the service leave; those to the world are as they should be."""
    first, _, later = seen["service"]
    assert first.out == later.out
    assert first.dst == 0x0A140207
    assert (first.src, first.snat) == (0x0A140316, False)
    world, answer, again = seen["world"]
    assert (world.out, world.src) == (again.out, again.src) == (PRIMARY, 0x0A14010A)
    assert answer.out == "eniaaaa0002"
    return first.out


def one_endpoint(text: str) -> str:
    """Return the rules with one endpoint of the service, outside the node."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("-A KUBE-SVC-WEB") or "WEB1" not in line)


BACKENDS = (SimulatorBackend(), IptablesBackend("iptables-legacy"), IptablesBackend("iptables-nft"))


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_in_iptables_mode_the_order_of_the_rules_decides(backend: Backend, node: Node) -> None:
    usual = one_endpoint(RULES)
    assert left_by(outcomes(backend, rules_of(usual), node)) == SECONDARY
    marked_first = usual.replace(PORTALS, "").replace(RESTORE, RESTORE + PORTALS)
    assert left_by(outcomes(backend, rules_of(marked_first), node)) == PRIMARY


@pytest.mark.parametrize(("late", "device"), [(False, SECONDARY), (True, PRIMARY)])
def test_in_nftables_mode_the_order_of_registration_decides(late: bool, device: str, node: Node) -> None:
    listing = read_listing((FOLDER / "kube-proxy.nft").read_text(), name="kube-proxy.nft")
    rest = rules_of(without_kube_proxy())
    backend = NftablesModeBackend(listing, rest, later=frozenset({IPTABLES} if late else ()))
    assert left_by(outcomes(backend, rest, node)) == device


@pytest.mark.parametrize("late", [False, True])
def test_the_cnis_own_table_comes_after_kube_proxy_in_either_order(late: bool, node: Node) -> None:
    tables = [(FOLDER / name).read_text() for name in ("kube-proxy.nft", "aws-cni.nft")]
    listing = read_listing("".join(tables[::-1] if late else tables), name="tables.nft")
    rest = rules_of(without_kube_proxy().replace(JUMP, "").replace(RESTORE, ""))
    backend = NftablesModeBackend(listing, rest, later=frozenset({IPTABLES} if late else ()))
    assert left_by(outcomes(backend, rest, node)) == SECONDARY
