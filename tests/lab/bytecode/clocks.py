"""Packets at other times of the clock: around midnights, ends of months and days of the week."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from itertools import product
from typing import Final

from tests.lab.bytecode.samples import Sample
from translate.ir import Field

__all__ = ["FRACTIONS", "at_times"]

FRACTIONS: Final = (0, 1, 999_999_999)
"""Nanoseconds within a second."""
_CLOCK: Final = frozenset({Field.CLOCK, Field.CLOCK_MONTHDAY, Field.CLOCK_MONTHDAY_BEFORE})
_WEEK: Final = 7
_MIDNIGHTS: Final = tuple(
    (date(*day) - date(1970, 1, 1)).days * 86400 + second
    for day in (
        *((2024, 2, 29), (2024, 3, 1), (2026, 1, 1), (2026, 1, 2), (2026, 3, 1), (2099, 12, 31)),
        *((1970, 1, 1), (1970, 1, 2), (1970, 1, 3), (1970, 1, 15), (2038, 2, 1)),
    )
    for second in (-1, 0)
    if (day, second) != ((1970, 1, 1), -1)
)
"""The last second of a day and the first of the next, around the ends of months and of 31 bits."""


def at_times(
    witness: Sample, fields: Iterable[Field], clock: Sequence[int | str], hours: Sequence[int | str]
) -> Iterator[Sample]:
    """Yield a packet at other times, as far as ``fields`` are of the clock.

    ``clock`` and ``hours`` are values of :attr:`Field.CLOCK` and :attr:`Field.CLOCK_DAYTIME` to be tried.
    """
    tested = frozenset(fields)
    if not tested & {Field.CLOCK_DAYTIME}:
        hours = ()
    if tested & _CLOCK:
        for value, fraction in product((*clock, *_MIDNIGHTS), FRACTIONS):
            at = replace(witness.having(Field.CLOCK, value), fraction=fraction)
            yield at
            yield from (at.having(Field.CLOCK_DAYTIME, hour) for hour in hours)
    if Field.CLOCK_WEEKDAY in tested:
        for hour, day in product(hours, range(_WEEK)):
            yield witness.having(Field.CLOCK_DAYTIME, hour).having(Field.CLOCK_WEEKDAY, day)
