"""Parity for IPv6: committed cases and random flows, through every backend that carries it.

The tc program does not (it refuses the rules), so these cases stand in a folder of their own.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.contract import Job
from backends.kernel.tc_ebpf import TcEbpfBackend
from backends.node import node_from_json
from backends.simulator import Simulation
from harness.backends import backend
from harness.batches import Batch, load_batches
from harness.compare import compare
from harness.corpus.randomflows import random_flows
from translate.errors import UnsupportedError
from translate.ir import Family
from translate.read import read_ruleset

CORPUS = Path(__file__).parent.parent / "corpus"
BATCHES = load_batches(rules=None, corpus=str(CORPUS / "cases6"), node=None)
KERNELS = ["iptables-legacy", "iptables-nft", "nftables"]
COUNT = 1_000


def job_of(folder: str, node: str) -> Job:
    path = CORPUS / "rulesets" / folder
    rules = path / "rules.ip6tables-save"
    return Job(
        ruleset=read_ruleset(rules.read_bytes(), name=str(rules)),
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


@pytest.mark.parametrize("batch", BATCHES, ids=lambda b: Path(b.rules_path).parent.name)
@pytest.mark.parametrize(("name", "level"), [*((k, 2) for k in KERNELS), ("nftables", 0), ("nftables", 1)])
def test_committed_cases(name: str, level: int, batch: Batch):
    assert batch.ruleset.family is Family.IP6
    job = Job(ruleset=batch.ruleset, node=batch.node, level=level)
    assert differences(name, job, batch.flows) == []


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("folder", "node"), [("six", "node.json"), ("kube-real", "node6.json")])
def test_random_flows(name: str, folder: str, node: str):
    job = job_of(folder, node)
    flows = list(random_flows(job.ruleset, job.node, seed=20_261_121, count=COUNT))
    assert differences(name, job, flows) == []


def test_the_tc_program_refuses_ipv6_by_name():
    with pytest.raises(UnsupportedError) as caught:
        TcEbpfBackend().open(job_of("six", "node.json"))
    assert {r.feature for r in caught.value.refusals} == {"ipv6"}
