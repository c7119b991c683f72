"""Whatever a backend draws, and whatever is wrong with its rules, each of its reports is the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow
from backends.model.outcome import FlowResult
from backends.simulator import SimulatorBackend
from harness.corpus.generate import generate_corpus
from harness.diff.batch import Batch
from harness.diff.deciding_rules import deciding_rules
from harness.diff.parity import Plan, run_parity
from harness.report.jsonreport import parity_json
from tests.unit.harness.helpers.drawing import DrawingBackend, faulty

DRAWS = 3
SHOWING = (1, 3, 4)
"""Seeds whose faults packets meet."""
SEEDS = (*SHOWING, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 25)))


@pytest.fixture(scope="module")
def flows(worker: Job) -> tuple[Flow, ...]:
    return generate_corpus(worker, seed=0).flows


@pytest.mark.parametrize("seed", SEEDS)
def test_no_report_tells_what_was_drawn(
    seed: int, worker: Job, kind_folder: Path, flows: tuple[Flow, ...]
) -> None:
    rules = faulty((kind_folder / "rules.iptables-save").read_text(), seed)
    batch = Batch(rules_path="rules", rules=worker.ruleset, node=worker.node, flows=flows, corpus="generated")
    known: dict[Flow, FlowResult] = {}
    reports = [
        run_parity(
            Plan(batches=(batch,)),
            (DrawingBackend(rules, seed=draw, known=known),),
            reference=SimulatorBackend(),
            rules=deciding_rules,
            progress=lambda name, done, total: None,
        )
        for draw in range(DRAWS)
    ]
    assert reports[0].differences or seed not in SHOWING
    assert len({parity_json(one) for one in reports}) == 1
