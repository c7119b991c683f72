"""Sets of integers as lists of intervals: what is common to two, and what is left of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from translate.ir import Family, Field, FieldTest, Interval, field_bits

__all__ = ["common", "minus", "passing"]


def common(a: Sequence[Interval], b: Sequence[Interval]) -> list[Interval]:
    """Return what is in both."""
    pairs = ((max(x.low, y.low), min(x.high, y.high)) for x in a for y in b)
    return [Interval(low, high) for low, high in pairs if low <= high]


def minus(a: Sequence[Interval], b: Sequence[Interval]) -> list[Interval]:
    """Return what is in ``a`` and not in ``b``."""
    left = list(a)
    for hole in b:
        cut = []
        for one in left:
            if one.high < hole.low or one.low > hole.high:
                cut.append(one)
                continue
            if one.low < hole.low:
                cut.append(Interval(one.low, hole.low - 1))
            if one.high > hole.high:
                cut.append(Interval(hole.high + 1, one.high))
        left = cut
    return left


def passing(tests: Iterable[FieldTest], field: Field, family: Family) -> list[Interval]:
    """Return the values of ``field`` that pass every one of ``tests`` that is about it (none masked)."""
    left = [Interval(0, (1 << field_bits(field, family)) - 1)]
    for test in tests:
        if test.field is field:
            values = sorted(v for v in test.values if isinstance(v, Interval))
            left = minus(left, values) if test.negated else common(left, values)
    return left
