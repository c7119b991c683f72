"""``-m connlimit``: the number of connections of an address or network."""

from __future__ import annotations

from typing import Final

from translate.ir import ConnectionLimit, SetDirection, Test
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    parse_mark,
)
from translate.read.spelling.address import parse_prefix_length
from translate.read.spelling.errors import OptionError

__all__ = ["CONNLIMIT"]

_LIMITS: Final = ("--connlimit-upto", "--connlimit-above")
_SIDES: Final = ("--connlimit-saddr", "--connlimit-daddr")


def _connlimit(options: Options, context: Context) -> tuple[Test, ...]:
    limits = [(i, o) for i, o in enumerate(options) if o.name in _LIMITS]
    if len(limits) != 1:
        message = "connlimit needs either --connlimit-upto or --connlimit-above"
        raise OptionError(message, option=limits[1][0] if limits else None, argument=0)
    sides = [i for i, o in enumerate(options) if o.name in _SIDES]
    if len(sides) > 1:
        raise OptionError(
            "connlimit takes one of --connlimit-saddr and --connlimit-daddr", option=sides[1], argument=0
        )
    index, limit = limits[0]
    bits = context.family.bits
    mask = options.find("--connlimit-mask")
    length = (
        bits if mask is None else parse_prefix_length(context.family, mask[1].arguments[0], option=mask[0])
    )
    return (
        ConnectionLimit(
            limit=parse_mark(limit.arguments[0], option=index),
            above=(limit.name == "--connlimit-above") is not limit.negated,
            side=SetDirection.DST if options.has("--connlimit-daddr") else SetDirection.SRC,
            mask=(1 << bits) - (1 << (bits - length)),
        ),
    )


CONNLIMIT: Final = MatchExtension(
    name="connlimit",
    options=(
        *(OptionSpec(name=name, invertible=True) for name in _LIMITS),
        OptionSpec(name="--connlimit-mask"),
        *(OptionSpec(name=name, arguments=0) for name in _SIDES),
    ),
    meaning=_connlimit,
)
"""``-m connlimit`` (``xt_connlimit``, revision 1)."""
