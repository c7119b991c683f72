"""Whatever the other side draws, and whatever its rules do, the assessment is the same."""

from __future__ import annotations

import pytest

from backends.model.flow import Flow
from backends.model.outcome import FlowResult
from harness.diff import sampling
from nfparity.assess.assessing import assess, detector_flows
from nfparity.assess.node.facts import Facts
from nfparity.assess.summary import Summary
from nfparity.report.assessjson import assessment_json
from tests.unit.harness.helpers.drawing import DrawingBackend, faulty

DRAWS = 3
SHOWING = 0
SEEDS = (0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 25)))


def drawn(seed: int, text: str, facts: Facts) -> list[Summary]:
    """Assessments of the same two rulesets, which draw anew each time; those of one have a seed's faults."""
    # Affinity has hundreds of draws in a flow, which are too many ways to simulate.
    wanted = [i for i in detector_flows(facts)[0] if not i.startswith("K25")]
    known: tuple[dict[Flow, FlowResult], ...] = ({}, {})
    reports = []
    for draw in range(DRAWS):
        before = DrawingBackend(facts.ruleset, seed=draw, name="before", known=known[0])
        after = DrawingBackend(faulty(text, seed, faults=12), seed=draw, name="after", known=known[1])
        found = assess(
            facts, before=before, after=after, only=wanted, progress=lambda name, done, total: None
        )
        reports.append(Summary(snapshot="rules", version=(1, 30), against=None, assessments=(found,)))
    return reports


@pytest.mark.parametrize("seed", SEEDS)
def test_no_assessment_tells_what_was_drawn(seed: int, text: str, facts: Facts) -> None:
    reports = drawn(seed, text, facts)
    assert any(one.findings or one.unexplained for one in reports[0].assessments)
    assert not any(one.disputed for one in reports[0].assessments)
    assert len({assessment_json(one) for one in reports}) == 1


def test_a_flow_that_is_run_once_shows_what_was_drawn(
    text: str, facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "runs_needed", lambda odds, miss, times=1: 1)
    assert len({assessment_json(one) for one in drawn(SHOWING, text, facts)}) > 1
