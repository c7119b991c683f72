"""``-m rt``: the routing header of IPv6."""

from __future__ import annotations

from typing import Final

from translate.ir import Family, Field, FieldTest, Test
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    between,
    parse_number,
    parse_range,
)

__all__ = ["RT"]

_BYTE: Final = 0xFF
_MOST: Final = 0xFFFFFFFF
_UNIT: Final = 8
"""Bytes in one unit of the header's length field, which does not count the first unit."""

_ORDER: Final = (Field.ROUTING_TYPE, Field.ROUTING_LEFT, Field.ROUTING_LENGTH)
"""The order in which ``ip6tables-save`` prints the options."""


def _rt(options: Options, context: Context) -> tuple[Test, ...]:
    tests = [_within(Field.ROUTING_TYPE, 0, _BYTE, negated=False)]
    for index, option in enumerate(options):
        text = option.arguments[0]
        match option.name:
            case "--rt-segsleft":
                low, high = parse_range(text, _MOST, option=index)
                tests.append(_within(Field.ROUTING_LEFT, low, high, negated=option.negated))
            case "--rt-type":
                number = parse_number(text, _MOST, option=index)
                tests.append(_within(Field.ROUTING_TYPE, number, number, negated=option.negated))
            case _:
                units, rest = divmod(parse_number(text, _MOST, option=index), _UNIT)
                number = _MOST if rest or not units else units - 1
                tests.append(_within(Field.ROUTING_LENGTH, number, number, negated=option.negated))
    return tuple(sorted(tests[1:], key=lambda test: _ORDER.index(test.field)) or tests)


def _within(field: Field, low: int, high: int, *, negated: bool) -> FieldTest:
    """Return the test of a byte of the header; larger numbers never match."""
    return between(field, low, min(high, _BYTE), negated=negated, family=Family.IP6)


_OF_TYPE_0: Final = "nftables and the simulator do not read the addresses of a routing header"

RT: Final = MatchExtension(
    name="rt",
    options=(
        OptionSpec(name="--rt-type", invertible=True),
        OptionSpec(name="--rt-segsleft", invertible=True),
        OptionSpec(name="--rt-len", invertible=True),
        OptionSpec(name="--rt-0-res", arguments=0, refused=_OF_TYPE_0),
        OptionSpec(name="--rt-0-addrs", refused=_OF_TYPE_0),
        OptionSpec(name="--rt-0-not-strict", arguments=0, refused=_OF_TYPE_0),
    ),
    meaning=_rt,
    family=Family.IP6,
)
"""``-m rt`` (``rt_mt6``): a packet without a routing header never matches, even if an option is negated."""
