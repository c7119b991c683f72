"""Packets with values in the header and the frame that satisfy wants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from backends.model.packet import Packet
from harness.corpus.generate.clock import with_time
from harness.corpus.generate.wants import Wants
from harness.corpus.headers import HEADER_FIELDS, shortest, with_header
from translate.ir import Field, Hook, Interval

__all__ = ["with_headers"]

_FORWARDED: Final = frozenset({Hook.FORWARD, Hook.POSTROUTING})


def with_headers(packet: Packet, wants: Wants, hook: Hook, entry: str | None) -> Packet | None:
    """Return the packet with values that the wants allow at ``hook``; None when it cannot have them.

    Only fields that the wants restrict change. Values at the ends of the allowed intervals come first.
    """
    forwarded = entry is not None and hook in _FORWARDED
    for field in HEADER_FIELDS:
        if not wants.asks(field):
            continue
        if field is Field.ETHER_SADDR and entry is None:
            return None
        fit = (
            made
            for value in _values(field, packet, wants)
            if wants.allows(field, value)
            and (made := with_header(packet, field, value, entry, forwarded=forwarded)) is not None
        )
        fitting = next(fit, None)
        if fitting is None:
            return None
        packet = fitting
    return with_time(packet, wants)


def _values(field: Field, packet: Packet, wants: Wants) -> Iterator[int]:
    """Yield values to try, likeliest first; not all are allowed."""
    intervals = wants.values(field)
    last = intervals[-1].high
    inner = [v for i in intervals for v in (i.low, i.high) if 0 < v < last or i.low == i.high]
    yield from dict.fromkeys(inner)
    usual = {Field.TTL: packet.ttl - 1, Field.TOS: packet.tos, Field.LENGTH: shortest(packet)}
    yield usual.get(field, 0)
    for test in wants.masked:
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
