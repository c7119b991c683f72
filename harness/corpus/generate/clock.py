"""Packets at a time that satisfies wants: an end of an allowed interval, on an allowed day."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from backends.model.clock import LATEST_TIME, clock_value
from backends.model.packet import Packet
from backends.model.withfields import with_fields
from harness.corpus.generate.wants import Wants
from harness.corpus.headers import PLAIN_TIME
from translate.ir import CLOCKS, Field

__all__ = ["with_time"]

_DAY: Final = 86400
_DAYS: Final = 400
"""The days that are tried: each day of the month falls on each day of the week."""
_OF_DAYS: Final = (Field.CLOCK_WEEKDAY, Field.CLOCK_MONTHDAY, Field.CLOCK_MONTHDAY_BEFORE)


def with_time(packet: Packet, wants: Wants) -> Packet | None:
    """Return the packet at a time that the wants allow; None if there is none among those that are tried."""
    fields = sorted(wants.fields & CLOCKS, key=lambda field: field.text)
    if not fields:
        return packet
    for time in _times(wants):
        if 0 <= time <= LATEST_TIME and all(wants.allows(f, clock_value(f, time)) for f in fields):
            return with_fields(packet, time=time)
    return None


def _times(wants: Wants) -> Iterator[int]:
    yield PLAIN_TIME
    dates = wants.values(Field.CLOCK)
    ends = [(i.low, 1) for i in dates if i.low] + [(i.high, -1) for i in dates if i.high < LATEST_TIME]
    yield from (end for end, _ in ends)
    inner = [v for i in wants.values(Field.CLOCK_DAYTIME) for v in (i.low, i.high) if v < _DAY]
    daytimes = (*inner, PLAIN_TIME % _DAY)
    for start, step in ((PLAIN_TIME, 1), *ends):
        first = start // _DAY
        for day in range(first, max(first + step * _DAYS, -1), step):
            noon = day * _DAY + _DAY // 2
            if all(wants.allows(field, clock_value(field, noon)) for field in _OF_DAYS):
                yield from (day * _DAY + daytime for daytime in daytimes)
