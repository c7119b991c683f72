"""Public dumps of Kubernetes nodes, on nodes inferred from their rules: parity on generated corpora."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow
from backends.simulator import SimulatorBackend
from harness.corpus.generate import generate_corpus
from harness.corpus.random.flows import random_flows
from harness.diff.backends import BACKENDS, REFERENCE, backend
from harness.diff.batch import Batch
from harness.diff.parity import Plan, run_parity
from nfparity.snapshot.inference import infer_node
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.reports import report_text
from translate.read import read_ruleset

DUMPS = Path(__file__).resolve().parents[3] / "shared/corpora/real-dumps"
MISSED = {
    "kind-1.23-traefik-node": (),
    # What would set the mark stands in chains that the excerpt does not show.
    "calico-ipvs-node-excerpt": (15, 28, 31),
}
"""The dumps, and the lines of the rules that no flow hits."""

KERNELS = tuple(name for name in BACKENDS if name != REFERENCE)

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
    pytest.mark.skipif(not DUMPS.is_dir(), reason="needs the public dumps beside the project"),
]


@cache
def made(stem: str) -> tuple[Job, tuple[Flow, ...]]:
    path = DUMPS / f"{stem}.iptables-save"
    ruleset = read_ruleset(path.read_bytes(), name=path.name)
    job = Job(rules=ruleset, node=infer_node(ruleset))
    corpus = generate_corpus(job, seed=0, exhaustive=True)
    assert tuple(r.rule.origin.line for r in corpus.coverage.missed) == MISSED[stem]
    drawn = random_flows(ruleset, job.node, count=200, seed=1)
    return job, (*corpus.flows, *drawn)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("stem", MISSED)
def test_parity(stem: str, name: str) -> None:
    require(backend(name))
    job, flows = made(stem)
    batch = Batch(rules_path=stem, rules=job.ruleset, node=job.node, flows=flows, corpus="generated")
    for level in (1, 2) if name == "nftables" else (1,):
        report = run_parity(
            Plan(batches=(batch,), level=level),
            (backend(name),),
            reference=SimulatorBackend(),
            rules=lambda *_: (),
            progress=lambda *_: None,
        )
        assert report.parity, report_text(report)
        assert [(b.flows, b.skipped) for b in report.backends] == [(len(flows), None)]
