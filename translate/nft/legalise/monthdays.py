"""Days of the month as intervals of the clock: nftables reads the day of the week, but not that of the month.

The clock of ``-m time`` has 32 bits (``time_mt``), so the days that a rule can meet end in 2106. A test of
some of them is a set of at most 2,000 intervals.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

from translate.ir import Field, FieldTest, Interval
from translate.ir.intervals import IntervalSet, intersection, intervals, subtraction, union

__all__ = ["MONTHDAYS", "on_clock"]

MONTHDAYS: Final = frozenset({Field.CLOCK_MONTHDAY, Field.CLOCK_MONTHDAY_BEFORE})
"""The fields that are a day of the month: of the clock, and of a day earlier."""

_DAY: Final = 86400
_FIRST_YEAR, _LAST_YEAR = 1970, 2106
_WHOLE: Final = (Interval(0, (1 << 32) - 1),)
_EVERY: Final = (Interval(1, 31),)


def on_clock(test: FieldTest) -> FieldTest:
    """Return an equal test of the clock for a test of the day of the month."""
    wanted = intervals(test.values)
    if test.negated:
        wanted = subtraction(_EVERY, wanted)
    days = frozenset(
        day for value in intersection(_EVERY, wanted) for day in range(value.low, value.high + 1)
    )
    later = _DAY if test.field is Field.CLOCK_MONTHDAY_BEFORE else 0
    return FieldTest(field=Field.CLOCK, values=_times(days, later))


@cache
def _times(days: frozenset[int], later: int) -> IntervalSet:
    """Return the seconds since 1970 on days of the month with these numbers, moved by ``later`` seconds.

    With ``later``, the first day of 1970 has no day before, and counts as a first day of a month
    (``clock_value`` of the simulator), which no clock shows any more.
    """
    chosen = [Interval(0, later - 1)] if later and 1 in days else []
    start = later
    for number in _numbers():
        if number in days:
            chosen.append(Interval(start, start + _DAY - 1))
        start += _DAY
    return intersection(union(chosen), _WHOLE)


def _numbers() -> Iterator[int]:
    """Yield the number of each day in its month, beginning with 1970-01-01 (``localtime_3``)."""
    for year in range(_FIRST_YEAR, _LAST_YEAR + 1):
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        for length in (31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31):
            yield from range(1, length + 1)
