"""Whatever the other side draws, and whatever its rules do, the assessment is the same."""

from __future__ import annotations

import pytest

from backends.model.flow import Flow
from backends.model.outcome import FlowResult
from nfparity.assess.assessing import assess, detector_flows
from nfparity.assess.facts import Facts
from nfparity.assess.summary import Summary
from nfparity.report.assessjson import assessment_json
from tests.unit.harness.helpers.drawing import DrawingBackend, faulty

DRAWS = 3
SEEDS = (0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 25)))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_assessment_tells_what_was_drawn(seed: int, text: str, facts: Facts) -> None:
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
    assert any(one.findings or one.unexplained for one in reports[0].assessments)
    assert not any(one.disputed for one in reports[0].assessments)
    assert len({assessment_json(one) for one in reports}) == 1
