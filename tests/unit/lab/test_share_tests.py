"""The chance that a test of shares finds a skewed share, which is computed exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from harness.diff.shares import binomial_tail
from tests.lab.share_tests import detection_power


def test_the_power_is_the_chance_of_a_count_that_fails() -> None:
    runs, fair, real, rate = 60, Fraction(1, 3), 0.55, 0.01
    failing = [k for k in range(runs + 1) if binomial_tail(k, runs, fair) < rate / 3]
    chance = sum(math.comb(runs, k) * real**k * (1 - real) ** (runs - k) for k in failing)
    assert detection_power(runs, fair, real, false_alarm_rate=rate, tests=3) == pytest.approx(
        chance, rel=1e-9
    )


@pytest.mark.parametrize(
    ("runs", "more", "low", "high"),
    [
        (20_000, 0.01, 0, 0.05),
        (20_000, 0.04, 0.9999, 1),
        pytest.param(200_000, 0.01, 0.9999, 1, marks=pytest.mark.slow),
    ],
)
def test_how_surely_a_larger_share_shows(runs: int, more: float, low: float, high: float) -> None:
    third = Fraction(1, 3)
    assert low <= detection_power(runs, third, float(third) + more, false_alarm_rate=1e-6, tests=3) <= high
