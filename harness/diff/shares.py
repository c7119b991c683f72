"""Tests of fairness: observed shares of branches against the reference's probabilities.

The test is exact, not asymptotic: if the reference is right, the count of each branch among n independent
runs is binomial. Every branch of every flow gets a two-sided binomial test, and the false-alarm rate is
divided by the number of tests (Bonferroni). A backend with the probabilities of the reference is therefore
reported as unfair with at most the stated probability, for any n and any shares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from translate.dataclass import dataclass

__all__ = ["FALSE_ALARM_RATE", "Tally", "Unfair", "binomial_tail", "log_choose", "unfair_shares"]

FALSE_ALARM_RATE = 1e-6
"""The default chance that a whole run reports a fair backend as unfair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The probability and the count of each path of one flow.

    ``what`` names the branches in reports, for example ``branch``.
    """

    flow_id: str
    what: str
    probabilities: tuple[Fraction, ...]
    counts: tuple[int, ...]

    @property
    def runs(self) -> int:
        """The number of runs counted."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfair:
    """A branch that was seen too often or too rarely; ``p_value`` is before correction."""

    flow_id: str
    what: str
    branch: int
    expected: Fraction
    count: int
    runs: int
    p_value: float
    threshold: float


def binomial_tail(count: int, runs: int, probability: Fraction) -> float:
    """Return the two-sided p-value of ``count`` hits in ``runs``: twice the smaller tail, at most 1."""
    if runs == 0 or probability in (0, 1):
        possible = count == runs * probability
        return 1.0 if possible else 0.0
    log_p, log_q = math.log(probability), math.log1p(-float(probability))
    lower = range(count + 1) if count <= runs * probability else range(count, runs + 1)
    total = math.fsum(math.exp(log_choose(runs, k) + k * log_p + (runs - k) * log_q) for k in lower)
    return min(1.0, 2 * total)


def log_choose(n: int, k: int) -> float:
    """Return the logarithm of the number of ways to choose ``k`` out of ``n``."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def unfair_shares(tallies: Sequence[Tally], *, false_alarm_rate: float) -> tuple[Unfair, ...]:
    """Return the branches whose counts the reference's probabilities do not explain."""
    tested = [t for t in tallies if len(t.probabilities) > 1 and t.runs]
    tests = sum(len(t.probabilities) for t in tested)
    if not tests:
        return ()
    threshold = false_alarm_rate / tests
    unfair = []
    for tally in tested:
        for i, (probability, count) in enumerate(zip(tally.probabilities, tally.counts, strict=True)):
            p_value = binomial_tail(count, tally.runs, probability)
            if p_value < threshold:
                unfair.append(
                    Unfair(
                        flow_id=tally.flow_id,
                        what=tally.what,
                        branch=i,
                        expected=probability,
                        count=count,
                        runs=tally.runs,
                        p_value=p_value,
                        threshold=threshold,
                    )
                )
    return tuple(unfair)
