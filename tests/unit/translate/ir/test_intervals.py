from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translate.ir import Interval
from translate.ir.intervals import IntervalSet, covers, intersection, subtraction, union

SETS = st.sets(st.integers(0, 12)).map(lambda ns: union(Interval.point(n) for n in ns))


def numbers(intervals: IntervalSet) -> set[int]:
    return {n for i in intervals for n in range(i.low, i.high + 1)}


def is_canonical(intervals: IntervalSet) -> bool:
    return all(a.high + 1 < b.low for a, b in pairwise(intervals))


@pytest.mark.parametrize(
    ("operation", "meaning"),
    [(intersection, set.intersection), (subtraction, set.difference)],
)
@given(a=SETS, b=SETS)
def test_operations_are_those_of_sets(
    operation: Callable[[IntervalSet, IntervalSet], IntervalSet],
    meaning: Callable[[set[int], set[int]], set[int]],
    a: IntervalSet,
    b: IntervalSet,
) -> None:
    found = operation(a, b)
    assert numbers(found) == meaning(numbers(a), numbers(b))
    assert is_canonical(found)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), max_size=6))
def test_a_union_of_overlapping_intervals_is_canonical(pairs: list[tuple[int, int]]) -> None:
    intervals = [Interval(low, low + span) for low, span in pairs]
    assert numbers(union(intervals)) == {n for i in intervals for n in range(i.low, i.high + 1)}
    assert is_canonical(union(intervals))


@given(SETS, SETS)
def test_covering_is_containing(a: IntervalSet, b: IntervalSet) -> None:
    assert covers(a, b) == (numbers(b) <= numbers(a))
