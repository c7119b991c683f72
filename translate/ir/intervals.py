"""Sets of integers as sorted, disjoint, non-adjacent intervals."""

from __future__ import annotations

from collections.abc import Iterable

from translate.ir.values import Interval, Value

__all__ = ["IntervalSet", "covers", "intersection", "intervals", "subtraction", "union"]

IntervalSet = tuple[Interval, ...]
"""A set of integers: sorted, disjoint and non-adjacent intervals, so that equal sets are equal tuples."""


def union(values: Iterable[Interval]) -> IntervalSet:
    """Return the set of all numbers in ``values``, which may overlap and come in any order."""
    intervals = tuple(values)
    if len(intervals) == 1:
        return intervals
    merged: list[Interval] = []
    for value in sorted(intervals):
        if merged and value.low <= merged[-1].high + 1:
            if value.high > merged[-1].high:
                merged[-1] = Interval(merged[-1].low, value.high)
        else:
            merged.append(value)
    return tuple(merged)


def intervals(values: tuple[Value, ...]) -> IntervalSet:
    """Return the set of numbers in the values of a numeric test."""
    if len(values) == 1 and isinstance(values[0], Interval):
        return values  # type: ignore[return-value]  # one interval
    return union(v for v in values if isinstance(v, Interval))


def intersection(a: IntervalSet, b: IntervalSet) -> IntervalSet:
    """Return the numbers that are in both sets."""
    if a == b:
        return a
    common: list[Interval] = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i].low, b[j].low), min(a[i].high, b[j].high)
        if low <= high:
            common.append(Interval(low, high))
        if a[i].high < b[j].high:
            i += 1
        else:
            j += 1
    return tuple(common)


def subtraction(a: IntervalSet, b: IntervalSet) -> IntervalSet:
    """Return the numbers in ``a`` that are not in ``b``."""
    remaining: list[Interval] = []
    for interval in a:
        low = interval.low
        for hole in b:
            if hole.high < low or hole.low > interval.high:
                continue
            if hole.low > low:
                remaining.append(Interval(low, hole.low - 1))
            low = hole.high + 1
        if low <= interval.high:
            remaining.append(Interval(low, interval.high))
    return tuple(remaining)


def covers(outer: IntervalSet, inner: IntervalSet) -> bool:
    """Return whether every number of ``inner`` is in ``outer``."""
    return intersection(outer, inner) == inner
