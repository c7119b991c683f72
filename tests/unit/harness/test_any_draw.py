"""Whatever a backend draws, and whatever is wrong with its rules, each of its reports is the same.

The rules have random faults. The same faults show what reports once had wrong: a flow was run once only, and
JUnit had no test case of a flow without a difference.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow
from backends.model.outcome import FlowResult
from backends.simulator import SimulatorBackend
from harness.corpus.generate import generate_corpus
from harness.diff import sampling
from harness.diff.batch import Batch
from harness.diff.deciding_rules import deciding_rules
from harness.diff.parity import Plan, run_parity
from harness.diff.result import ParityReport
from harness.report import junit
from harness.report.jsonreport import parity_json
from harness.report.junit import parity_junit
from tests.unit.harness.helpers.drawing import DrawingBackend, faulty

DRAWS = 3
SHOWING = (1, 3, 4)
"""Seeds whose faults packets meet."""
SEEDS = (*SHOWING, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 25)))


@pytest.fixture(scope="module")
def flows(worker: Job) -> tuple[Flow, ...]:
    return generate_corpus(worker, seed=0).flows


Reports = Callable[[int], list[ParityReport]]


@pytest.fixture(scope="module")
def drawn(worker: Job, kind_folder: Path, flows: tuple[Flow, ...]) -> Reports:
    """``drawn(seed)``: the reports about a backend that draws anew; its rules have the faults of a seed."""

    def made(seed: int) -> list[ParityReport]:
        rules = faulty((kind_folder / "rules.iptables-save").read_text(), seed)
        batch = Batch(
            rules_path="rules", rules=worker.ruleset, node=worker.node, flows=flows, corpus="generated"
        )
        known: dict[Flow, FlowResult] = {}
        return [
            run_parity(
                Plan(batches=(batch,)),
                (DrawingBackend(rules, seed=draw, known=known),),
                reference=SimulatorBackend(),
                rules=deciding_rules,
                progress=lambda name, done, total: None,
            )
            for draw in range(DRAWS)
        ]

    return made


@pytest.fixture(scope="module")
def reports(drawn: Reports) -> Reports:
    """The same reports, made once for each seed."""
    return cache(drawn)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_report_tells_what_was_drawn(seed: int, reports: Reports, flows: tuple[Flow, ...]) -> None:
    made = reports(seed)
    assert made[0].differences or seed not in SHOWING
    assert len({parity_json(one) for one in made}) == 1
    assert _cases(made[0]) == len(flows)


def _cases(report: ParityReport) -> int:
    """The number of test cases in JUnit; it must be the number that is told there."""
    root = ElementTree.fromstring(parity_junit(report, times=False))
    cases = len(root.findall("testsuite/testcase"))
    assert root.get("tests") == str(len(report.backends[0].cases))
    return cases


def test_a_flow_that_is_run_once_shows_what_was_drawn(
    drawn: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "runs_needed", lambda odds, miss, times=1: 1)
    assert len({parity_json(one) for one in drawn(SHOWING[0])}) > 1


def test_cases_of_differences_alone_are_too_few(
    reports: Reports, flows: tuple[Flow, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    add = junit._add

    def if_it_failed(suite: Element, classname: str, case: junit.TestCase, *, times: bool) -> None:
        if case.failure is not None:
            add(suite, classname, case, times=times)

    monkeypatch.setattr(junit, "_add", if_it_failed)
    assert 0 < _cases(reports(SHOWING[0])[0]) < len(flows)
