from __future__ import annotations

import math
from fractions import Fraction

import pytest

from harness.diff.shares import Tally, binomial_tail, unfair_shares

HALF = (Fraction(1, 2), Fraction(1, 2))


def exact_tail(count: int, runs: int, p: Fraction) -> Fraction:
    ks = range(count + 1) if count <= runs * p else range(count, runs + 1)
    return min(
        Fraction(1), 2 * sum((math.comb(runs, k) * p**k * (1 - p) ** (runs - k) for k in ks), Fraction(0))
    )


@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(1, 3), Fraction(1, 100), Fraction(715827883, 2**31)])
def test_the_tail_is_the_binomials(p: Fraction) -> None:
    for count in (0, 1, 7, 20, 40):
        assert binomial_tail(count, 40, p) == pytest.approx(float(exact_tail(count, 40, p)), rel=1e-9)


def test_certainties() -> None:
    assert binomial_tail(5, 5, Fraction(1)) == 1.0
    assert binomial_tail(4, 5, Fraction(1)) == 0.0
    assert binomial_tail(1, 5, Fraction(0)) == 0.0


def test_fair_shares_pass_and_skewed_ones_do_not() -> None:
    fair = Tally(flow_id="fair", what="branch", probabilities=HALF, counts=(489, 511))
    skewed = Tally(flow_id="skewed", what="branch", probabilities=HALF, counts=(350, 650))
    found = unfair_shares([fair, skewed], false_alarm_rate=1e-6)
    assert {u.flow_id for u in found} == {"skewed"}
    assert {u.branch for u in found} == {0, 1}
    assert found[0].threshold == pytest.approx(1e-6 / 4)


def test_a_branch_that_never_comes() -> None:
    thirds = (Fraction(1, 3),) * 3
    tally = Tally(flow_id="f", what="branch", probabilities=thirds, counts=(50, 50, 0))
    assert [u.branch for u in unfair_shares([tally], false_alarm_rate=1e-6)] == [2]


def test_the_false_alarm_rate_holds() -> None:
    # Every count of 200 fair runs, weighted by its probability: what is called unfair adds up.
    runs, rate = 200, 0.05
    alarm = sum(
        math.comb(runs, k) / 2**runs
        for k in range(runs + 1)
        if unfair_shares(
            [Tally(flow_id="f", what="branch", probabilities=HALF, counts=(k, runs - k))],
            false_alarm_rate=rate,
        )
    )
    assert 0 < alarm <= rate


def test_nothing_to_test() -> None:
    assert unfair_shares([], false_alarm_rate=0.5) == ()
    assert (
        unfair_shares(
            [Tally(flow_id="f", what="branch", probabilities=HALF, counts=(0, 0))], false_alarm_rate=0.5
        )
        == ()
    )
