"""ICMP errors that the kernel leaves out of a replay, because it limits them.

The reference answers each packet without a route. A replay may see that a packet had none, and not whether
the rules dropped the error or the kernel left it out (:mod:`backends.replay.unrouted`). Such an outcome is
``unknown``, and counts as that of the two which is expected. If both are, it counts as each of them, with
their odds.
"""

from __future__ import annotations

from fractions import Fraction

from backends.model.flow import Flow
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, Verdict
from harness.diff.agreement import distance
from translate.dataclass import replace

__all__ = ["with_errors_left_out"]


def with_errors_left_out(flow: Flow, expected: FlowResult | None, observed: FlowResult) -> FlowResult:
    """Return an observed result in which each error that may have been left out is sent or dropped."""
    if not any(_is_open(outcome) for branch in observed.branches for outcome in branch.outcomes):
        return observed
    shares: dict[tuple[Outcome, ...], Fraction] = {}
    for branch in observed.branches:
        odds = _possible(flow, expected, branch) or {_sent(branch): Fraction(1)}
        total = sum(odds.values())
        for outcomes, share in odds.items():
            shares[outcomes] = shares.get(outcomes, Fraction(0)) + branch.probability * share / total
    branches = tuple(OutcomeBranch(share, outcomes) for outcomes, share in shares.items())
    return replace(observed, branches=branches)


def _is_open(outcome: Outcome) -> bool:
    return outcome.verdict is Verdict.UNKNOWN


def _possible(
    flow: Flow, expected: FlowResult | None, observed: OutcomeBranch
) -> dict[tuple[Outcome, ...], Fraction]:
    """Return the outcomes that an observed branch may stand for and that are expected, with their odds."""
    odds: dict[tuple[Outcome, ...], Fraction] = {}
    for branch in () if expected is None else expected.branches:
        outcomes = tuple(
            replace(have, verdict=want.verdict) if _is_open(have) and not _is_open(want) else have
            for want, have in zip(branch.outcomes, observed.outcomes, strict=False)
        )
        if not distance(flow, branch, replace(observed, outcomes=outcomes)):
            odds[outcomes] = odds.get(outcomes, Fraction(0)) + branch.probability
    return odds


def _sent(observed: OutcomeBranch) -> tuple[Outcome, ...]:
    """Return the outcomes of a branch with every error sent."""
    return tuple(
        replace(outcome, verdict=Verdict.REJECT) if _is_open(outcome) else outcome
        for outcome in observed.outcomes
    )
