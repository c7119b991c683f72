"""Parity for IPv6: committed cases and random flows, through every backend."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow, Send
from backends.model.node import node_from_json
from backends.simulator import Simulation
from harness.corpus.random.flows import random_flows
from harness.diff.backends import backend
from harness.diff.batch import Batch
from harness.diff.compare import compare
from nfparity.inputs.batches import load_batches
from translate.ir import Family
from translate.read import read_ruleset

CORPUS = Path(__file__).parent.parent / "corpus"
BATCHES = load_batches(rules=None, corpus=str(CORPUS / "cases6"), node=None)
KERNELS = ["iptables-legacy", "iptables-nft", "nftables", "tc-ebpf"]
COUNTS = [300, pytest.param(1_000, marks=pytest.mark.slow)]


def job_of(folder: str, node: str) -> Job:
    path = CORPUS / "rulesets" / folder
    rules = path / "rules.ip6tables-save"
    return Job(
        rules=read_ruleset(rules.read_bytes(), name=str(rules)),
        node=node_from_json((path / node).read_text(), name=node),
    )


def differences(name: str, job: Job, flows) -> list[str]:
    tested = backend(name)
    if not (found := tested.probe()).ok:
        pytest.skip(f"{name}: {found.reason}")
    simulation = Simulation(job)
    with tested.open(job) as session:
        results = list(session.replay(flows))
    assert len(results) == len(flows)
    return [
        f"{flow.id}: {mismatch}"
        for flow, result in zip(flows, results, strict=True)
        for mismatch in compare(flow, simulation.simulate(flow), result)
    ]


def _folder(batch: Batch) -> str:
    return Path(batch.rules_path).parent.name


AT_ONCE = {"nftables": ("six", "kube-real", "strange6"), "tc-ebpf": ("six", "header-changes6")}
"""The rules that ``make test`` takes; ``make diff-test`` takes all of them."""


@pytest.mark.parametrize(
    ("name", "batch"),
    [
        pytest.param(
            name,
            batch,
            id=f"{name}-{_folder(batch)}",
            marks=[] if _folder(batch) in AT_ONCE[name] else [pytest.mark.slow],
        )
        for name in ("nftables", "tc-ebpf")
        for batch in BATCHES
    ],
)
def test_committed_cases(name: str, batch: Batch):
    """At the default level; ``make diff-test`` takes all backends and levels."""
    assert batch.ruleset.family is Family.IP6
    job = Job(rules=batch.ruleset, node=batch.node)
    assert differences(name, job, batch.flows) == []


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("folder", "node"), [("six", "node.json"), ("kube-real", "node6.json")])
@pytest.mark.parametrize("count", COUNTS)
def test_random_flows(name: str, folder: str, node: str, count: int):
    job = job_of(folder, node)
    flows = list(random_flows(job.ruleset, job.node, seed=20_261_121, count=count))
    if name == "tc-ebpf":
        # A reply to it gets ::1 back as its destination before the stack looks at it, and is dropped there.
        flows = [flow for flow in flows if not _leaves_from_localhost(flow)]
    assert differences(name, job, flows) == []


def _leaves_from_localhost(flow: Flow) -> bool:
    return any(isinstance(s, Send) and s.entry is None and s.packet.src == 1 for s in flow.steps)
