"""Corpora made from rules, on the running kernel: parity, and real rule counters."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from backends.model.contract import Job
from backends.model.node import node_from_json
from backends.simulator import SimulatorBackend
from harness.corpus.coverage import CoverageReport, coverage
from harness.corpus.generate import GeneratedCorpus, generate_corpus
from harness.diff.backends import BACKENDS, REFERENCE, backend
from harness.diff.batch import Batch
from harness.diff.kernelcounts import count_in_kernel
from harness.diff.parity import Plan, run_parity
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.reports import report_text
from translate.read import read_ruleset

RULESETS = Path(__file__).resolve().parents[1] / "corpus/rulesets"
KIND, KUBE = RULESETS / "kind-node", RULESETS / "kube-real"
KERNELS = tuple(name for name in BACKENDS if name != REFERENCE)
TRANSLATED = ("nftables", "tc-ebpf")
REPEAT = 40

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
]


def read_job(rules: Path, node: Path) -> Job:
    ruleset = read_ruleset(rules.read_bytes(), name=rules.name)
    return Job(rules=ruleset, node=node_from_json(node.read_text(), name=node.name))


@pytest.fixture(scope="module", params=["worker", pytest.param("control-plane", marks=pytest.mark.slow)])
def job(request: pytest.FixtureRequest) -> Job:
    return read_job(KIND / "rules.iptables-save", KIND / f"{request.param}.json")


@pytest.fixture(
    scope="module",
    params=["rules.iptables-save", pytest.param("rules.ip6tables-save", marks=pytest.mark.slow)],
)
def cluster(request: pytest.FixtureRequest) -> Job:
    """Return kube-proxy's rules for every feature of a Service, on a node of each family."""
    node = "node6.json" if "ip6" in request.param else "node.json"
    return read_job(KUBE / request.param, KUBE / node)


@pytest.fixture(scope="module")
def made(job: Job) -> GeneratedCorpus:
    return generate_corpus(job, seed=0, exhaustive=True)


@pytest.fixture(
    scope="module",
    params=[False, pytest.param(True, marks=pytest.mark.slow)],
    ids=["by class", "exhaustive"],
)
def made_for_cluster(cluster: Job, request: pytest.FixtureRequest) -> GeneratedCorpus:
    return generate_corpus(cluster, seed=0, exhaustive=request.param)


def able(name: str) -> None:
    require(backend(name))


@pytest.mark.parametrize(
    ("job", "name", "level"),
    [
        *(("worker", name, 2) for name in KERNELS),
        *(pytest.param("control-plane", name, 2, marks=pytest.mark.slow) for name in KERNELS),
        *(
            pytest.param(node, name, level, marks=pytest.mark.slow)
            for node in ("worker", "control-plane")
            for name in TRANSLATED
            for level in (0, 1)
        ),
    ],
    indirect=["job"],
)
def test_parity(job: Job, made: GeneratedCorpus, name: str, level: int) -> None:
    able(name)
    batch = Batch(rules_path="kind", rules=job.ruleset, node=job.node, flows=made.flows, corpus="generated")
    plan = Plan(batches=(batch,), level=level, repeat=REPEAT)
    report = run_parity(
        plan, (backend(name),), reference=SimulatorBackend(), rules=lambda *_: (), progress=lambda *_: None
    )
    assert report.parity, report_text(report)
    assert report.repeated > REPEAT
    assert report.share_tests


def count(job: Job, made: GeneratedCorpus) -> CoverageReport:
    """Return the rules in which iptables-legacy counts packets."""
    able("iptables-legacy")
    counts = count_in_kernel(job, made.flows)
    return coverage(job.ruleset, [counts], counted_by="iptables-legacy", flows=len(made.flows))


def test_every_reachable_rule_counts_packets_in_the_kernel(job: Job, made: GeneratedCorpus) -> None:
    report = count(job, made)
    assert report.missed == ()
    assert [r.chain for r in report.unreachable] == ["KUBE-MARK-DROP"]
    assert not any(r.matched for r in report.unreachable)


@pytest.mark.slow
def test_every_rule_of_a_cluster(cluster: Job, made_for_cluster: GeneratedCorpus) -> None:
    reached = made_for_cluster.coverage
    assert reached.missed == reached.unreachable == ()
    report = count(cluster, made_for_cluster)
    assert report.missed == report.unreachable == ()


@pytest.mark.parametrize("name", KERNELS)
def test_parity_on_a_cluster(cluster: Job, made_for_cluster: GeneratedCorpus, name: str) -> None:
    able(name)
    flows = made_for_cluster.flows
    batch = Batch(
        rules_path="kube", rules=cluster.ruleset, node=cluster.node, flows=flows, corpus="generated"
    )
    report = run_parity(
        Plan(batches=(batch,), level=2, miss=1.0),
        (backend(name),),
        reference=SimulatorBackend(),
        rules=lambda *_: (),
        progress=lambda *_: None,
    )
    assert report.parity, report_text(report)
