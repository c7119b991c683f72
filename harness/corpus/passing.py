"""The values of a field that pass all tests of it."""

from __future__ import annotations

from collections.abc import Iterable

from translate.ir import Family, Field, FieldTest, Interval, field_bits
from translate.ir.intervals import IntervalSet, intersection, intervals, subtraction

__all__ = ["passing"]


def passing(tests: Iterable[FieldTest], field: Field, family: Family) -> IntervalSet:
    """Return the values of ``field`` that pass all its tests among ``tests``, which must have no mask."""
    left: IntervalSet = (Interval(0, (1 << field_bits(field, family)) - 1),)
    for test in tests:
        if test.field is field:
            values = intervals(test.values)
            left = subtraction(left, values) if test.negated else intersection(left, values)
    return left
