"""``-m eui64``: an IPv6 source that its sender has made from its hardware address."""

from __future__ import annotations

from typing import Final

from translate.ir import Family, Field, FieldTest, Hook, Interval, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options

__all__ = ["EUI64"]


def _eui64(_options: Options, _context: Context) -> tuple[Test, ...]:
    return (FieldTest(field=Field.EUI64, values=(Interval.point(1),)),)


EUI64: Final = MatchExtension(
    name="eui64",
    options=(),
    meaning=_eui64,
    family=Family.IP6,
    hooks=frozenset({Hook.PREROUTING, Hook.INPUT, Hook.FORWARD}),
)
"""``-m eui64`` (``eui64_mt6``): the lower half of the source is the EUI-64 of the frame's source (RFC 4291).

It is false of a packet that came through ``lo``.
"""
