"""The node's clock: the values of its fields at a time, and the times of a flow's packets.

A kernel has one clock for all network namespaces, which no test can set. The simulator's
clock shows the ``time`` of each packet.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from backends.model.flow import Flow, Send, Step
from translate.dataclass import replace
from translate.ir import Field, FieldTest, Ruleset

__all__ = [
    "LATEST_TIME",
    "at_present",
    "begun_at",
    "clock_value",
    "has_time",
    "reads_clock",
    "time_from_text",
    "time_to_text",
]

LATEST_TIME: Final = (1 << 32) - 1
"""The latest time that a packet can have: dates of xt_time have 32 bits."""
_FORMAT: Final = "%Y-%m-%dT%H:%M:%S"

_DAY: Final = 86400
_THURSDAY: Final = 4
"""The day of the week of 1970-01-01, where 0 is Sunday."""


def clock_value(field: Field, time: int) -> int:
    """Return the value of one of the fields of the clock at a time, in seconds since 1970 (``time_mt``)."""
    match field:
        case Field.CLOCK:
            return time
        case Field.CLOCK_DAYTIME:
            return time % _DAY
        case Field.CLOCK_WEEKDAY:
            return (time // _DAY + _THURSDAY) % 7
        case Field.CLOCK_MONTHDAY:
            return datetime.fromtimestamp(time, UTC).day
        case _:
            return datetime.fromtimestamp(max(time - _DAY, 0), UTC).day


def time_to_text(time: int) -> str:
    """Return a time as ``2026-01-05T12:00:00``, in UTC."""
    return datetime.fromtimestamp(time, UTC).strftime(_FORMAT)


def time_from_text(text: str) -> int:
    """Return the seconds since 1970 of a time in the form of :func:`time_to_text`; ValueError otherwise."""
    try:
        time = int(datetime.strptime(text, _FORMAT).replace(tzinfo=UTC).timestamp())
    except ValueError:
        time = -1
    if not 0 <= time <= LATEST_TIME:
        raise ValueError(f"{text!r} is not a time; write it as 2026-01-05T12:00:00, in UTC")
    return time


def reads_clock(ruleset: Ruleset) -> bool:
    """Return whether a rule tests the clock."""
    # Every -m time tests the clock itself, for its --datestop.
    tests = (test for rule in ruleset.rules() for test in rule.tests if isinstance(test, FieldTest))
    return any(test.field is Field.CLOCK for test in tests)


def has_time(flow: Flow) -> bool:
    """Return whether a packet of the flow sets the clock."""
    return any(isinstance(step, Send) and step.packet.time is not None for step in flow.steps)


def begun_at(flow: Flow, time: int) -> Flow:
    """Return the flow with its first packet at ``time``, unless it has a time."""
    if flow.first.packet.time is not None:
        return flow
    first = Send(packet=replace(flow.first.packet, time=time), entry=flow.first.entry)
    return Flow(id=flow.id, steps=(first, *flow.steps[1:]), why=flow.why, source=flow.source)


def at_present(flow: Flow) -> Flow:
    """Return the flow with no time on its packets, as every backend can send it."""
    if not has_time(flow):
        return flow
    steps: tuple[Step, ...] = tuple(
        Send(packet=replace(step.packet, time=None), entry=step.entry) if isinstance(step, Send) else step
        for step in flow.steps
    )
    return Flow(id=flow.id, steps=steps, why=flow.why, source=flow.source)
