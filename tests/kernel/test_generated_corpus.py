"""The corpus made from the kind node's rules, on the running kernel: parity, and real rule counters."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from backends.contract import Job
from backends.node import node_from_json
from backends.simulator import SimulatorBackend
from harness.backends import BACKENDS, REFERENCE, backend
from harness.batches import Batch
from harness.corpus.generate import GeneratedCorpus, generate_corpus
from harness.coverage import count_in_kernel, coverage
from harness.parity import Plan, run_parity
from harness.repeat import repetitions
from translate.read import read_ruleset

KIND = Path(__file__).resolve().parents[1] / "corpus/rulesets/kind-node"
KERNELS = tuple(name for name in BACKENDS if name != REFERENCE)
REPEAT = 40  # a fair coin shows one side only once in 10^12 such series

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
]


@pytest.fixture(scope="module", params=["worker", "control-plane"])
def job(request: pytest.FixtureRequest) -> Job:
    rules = read_ruleset((KIND / "rules.iptables-save").read_bytes(), name="kind")
    text = (KIND / f"{request.param}.json").read_text()
    return Job(ruleset=rules, node=node_from_json(text, name=request.param))


@pytest.fixture(scope="module")
def made(job: Job) -> GeneratedCorpus:
    return generate_corpus(job, seed=0)


def able(name: str) -> None:
    availability = backend(name).probe()
    if not availability.ok:
        pytest.skip(f"{name}: {availability.reason}")


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("name", KERNELS)
def test_parity(job: Job, made: GeneratedCorpus, name: str, level: int) -> None:
    able(name)
    batch = Batch(rules_path="kind", ruleset=job.ruleset, node=job.node, flows=made.flows, corpus="generated")
    plan = Plan(batches=(batch,), level=level, repeat=REPEAT)
    report = run_parity(
        plan, (backend(name),), reference=SimulatorBackend(), rules=lambda *_: (), progress=lambda *_: None
    )
    assert report.parity, report.differences[:3]
    assert report.flows > len(made.flows) + REPEAT


def test_every_reachable_rule_counts_packets_in_the_kernel(job: Job, made: GeneratedCorpus) -> None:
    able("iptables-legacy")
    simulated = SimulatorBackend()
    with simulated.open(job) as session:
        chancy = [
            f for f, r in zip(made.flows, session.replay(made.flows), strict=True) if len(r.branches) > 1
        ]
    flows = [*made.flows, *(again for flow in chancy for again in repetitions(flow, REPEAT))]
    counts = count_in_kernel(job, flows)
    report = coverage(job.ruleset, [counts], counted_by="iptables-legacy", flows=len(flows))
    assert report.missed == ()
    assert [r.chain for r in report.unreachable] == ["KUBE-MARK-DROP"]
    assert {(r.chain, r.number) for r in report.rules if r.matched} == {
        (r.chain, r.number) for r in made.coverage.rules if r.matched
    }
