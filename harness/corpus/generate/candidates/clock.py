"""Packets at a time that satisfies constraints: an end of an allowed interval, on an allowed day."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from backends.model.clock import LATEST_TIME, clock_value
from backends.model.packet import Packet
from harness.corpus.formats.headers import PLAIN_TIME
from harness.corpus.generate.candidates.constraints import Constraints
from translate.dataclass import replace
from translate.ir import CLOCKS, Field

__all__ = ["with_time"]

_DAY: Final = 86400
_DAYS: Final = 400
"""The days that are tried: each day of the month falls on each day of the week."""
_OF_DAYS: Final = (Field.CLOCK_WEEKDAY, Field.CLOCK_MONTHDAY, Field.CLOCK_MONTHDAY_BEFORE)


def with_time(packet: Packet, constraints: Constraints) -> Packet | None:
    """Return the packet at a time that the constraints allow; None if no tried time is allowed."""
    fields = sorted(constraints.fields & CLOCKS, key=lambda field: field.text)
    if not fields:
        return packet
    for time in _times(constraints):
        if 0 <= time <= LATEST_TIME and all(constraints.allows(f, clock_value(f, time)) for f in fields):
            return replace(packet, time=time)
    return None


def _times(constraints: Constraints) -> Iterator[int]:
    yield PLAIN_TIME
    dates = constraints.values(Field.CLOCK)
    ends = [(i.low, 1) for i in dates if i.low] + [(i.high, -1) for i in dates if i.high < LATEST_TIME]
    yield from (end for end, _ in ends)
    inner = [v for i in constraints.values(Field.CLOCK_DAYTIME) for v in (i.low, i.high) if v < _DAY]
    daytimes = (*inner, PLAIN_TIME % _DAY)
    for start, step in ((PLAIN_TIME, 1), *ends):
        first = start // _DAY
        for day in range(first, max(first + step * _DAYS, -1), step):
            noon = day * _DAY + _DAY // 2
            if all(constraints.allows(field, clock_value(field, noon)) for field in _OF_DAYS):
                yield from (day * _DAY + daytime for daytime in daytimes)
