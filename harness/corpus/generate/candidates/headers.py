"""Packets with values in the header and the frame that satisfy constraints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from backends.model.packet import Packet
from harness.corpus.formats.headers import HEADER_FIELDS, shortest, with_header
from harness.corpus.generate.candidates.clock import with_time
from harness.corpus.generate.candidates.constraints import Constraints
from translate.ir import Field, Hook, Interval

__all__ = ["with_headers"]

_FORWARDED: Final = frozenset({Hook.FORWARD, Hook.POSTROUTING})


def with_headers(packet: Packet, constraints: Constraints, hook: Hook, entry: str | None) -> Packet | None:
    """Return the packet with values that the constraints allow at ``hook``; None when it cannot have them.

    Only fields that the constraints restrict change. Values at the ends of the allowed intervals come first.
    """
    forwarded = entry is not None and hook in _FORWARDED
    for field in HEADER_FIELDS:
        if not constraints.has(field):
            continue
        if field is Field.ETHER_SADDR and entry is None:
            return None
        fit = (
            made
            for value in _values(field, packet, constraints)
            if constraints.allows(field, value)
            and (made := with_header(packet, field, value, entry, forwarded=forwarded)) is not None
        )
        fitting = next(fit, None)
        if fitting is None:
            return None
        packet = fitting
    return with_time(packet, constraints)


def _values(field: Field, packet: Packet, constraints: Constraints) -> Iterator[int]:
    """Yield values to try, likeliest first; not all are allowed."""
    intervals = constraints.values(field)
    last = intervals[-1].high
    inner = [v for i in intervals for v in (i.low, i.high) if 0 < v < last or i.low == i.high]
    yield from dict.fromkeys(inner)
    usual = {Field.TTL: packet.ttl - 1, Field.TOS: packet.tos, Field.LENGTH: shortest(packet)}
    yield usual.get(field, 0)
    for test in constraints.masked:
        if test.field is field:
            yield from _around(test.values, test.mask or 0)
    yield from (v for i in intervals for v in (i.low, i.high))
    if field in (Field.TTL, Field.TOS):
        yield from range(0x100)
    if field is Field.ETHER_SADDR:
        yield 0x020000000300  # another host


def _around(values: Iterable[object], mask: int) -> Iterator[int]:
    """Yield the values of a masked test, and each value with one bit of the mask flipped."""
    for value in values:
        if isinstance(value, Interval):
            yield value.low
            yield from (value.low ^ 1 << n for n in range(mask.bit_length()) if mask >> n & 1)
