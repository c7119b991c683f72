from __future__ import annotations

from fractions import Fraction

import pytest

from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, Verdict
from nfparity.assess.replay.results import Results

DROPPED = FlowResult("a", (OutcomeBranch(Fraction(1), (Outcome(verdict=Verdict.DROP),)),))


def test_a_result_is_made_when_it_is_read() -> None:
    made: list[str] = []

    def make() -> FlowResult:
        made.append("a")
        return DROPPED

    results = Results({"a": make})
    assert "a" in results
    assert "b" not in results
    assert (list(results), len(results), made) == (["a"], 1, [])
    assert results["a"] is DROPPED
    assert dict(results) == {"a": DROPPED}
    with pytest.raises(KeyError):
        results["b"]
