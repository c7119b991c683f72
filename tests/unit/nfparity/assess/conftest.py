"""A real kube-proxy's rules as facts, and a side whose rules are simulated instead of the job's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from backends.model.contract import Availability, Job, Session
from backends.model.node import Node, node_from_json
from backends.simulator import SimulatorBackend
from nfparity.assess.catalogue import Version
from nfparity.assess.node.facts import Facts, gather
from nfparity.kubeproxy import recover
from translate.ir import Ruleset
from translate.read import read_ruleset

RULES = Path(__file__).resolve().parents[3] / "corpus/rulesets/kube-real/rules.iptables-save"

NODE = """{
  "interfaces": {"eth0": ["192.168.0.2/24"], "cni0": ["10.244.0.1/24"]},
  "routes": [{"dst": "default", "via": "192.168.0.1", "dev": "eth0"}],
  "sysctls": {"net.ipv4.conf.all.route_localnet": "1"}
}"""


@dataclass(frozen=True)
class Simulated:
    """The simulator, with rules of its own."""

    ruleset: Ruleset
    name: str = "simulated"

    def probe(self) -> Availability:
        return Availability(ok=True)

    def open(self, job: Job) -> AbstractContextManager[Session]:
        return SimulatorBackend().open(replace(job, rules=self.ruleset))


@pytest.fixture(scope="session")
def text() -> str:
    return RULES.read_text()


@pytest.fixture(scope="session")
def node() -> Node:
    return node_from_json(NODE, name="node")


@pytest.fixture(scope="session")
def made(node: Node) -> Callable[..., Facts]:
    """``made(text)``: the facts of these rules on the node."""

    def make(text: str, *, version: Version | None = (1, 30), **more: object) -> Facts:
        ruleset = read_ruleset(text.encode(), name="rules")
        return gather(ruleset, node, recover(ruleset), version=version, **more)  # type: ignore[arg-type]

    return make


@pytest.fixture(scope="session")
def facts(text: str, made: Callable[..., Facts]) -> Facts:
    return made(text)


@pytest.fixture(scope="session")
def simulated() -> Callable[[str], Simulated]:
    """``simulated(text)``: a side that runs these rules."""
    return lambda text: Simulated(read_ruleset(text.encode(), name="then"))
