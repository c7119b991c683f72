"""``-m rt``: the routing header of IPv6."""

from __future__ import annotations

from typing import Final

from translate.ir import Family, Field, FieldTest, Interval, Test
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    between,
    parse_number,
    parse_range,
)
from translate.read.spelling.address import parse_canonical
from translate.read.spelling.errors import NotModelledError, OptionError
from translate.read.spelling.numbers import unsigned

__all__ = ["RT"]

_BYTE: Final = 0xFF
_MOST: Final = 0xFFFFFFFF
_UNIT: Final = 8
"""Bytes in one unit of the header's length field, which does not count the first unit."""

_ORDER: Final = (
    *(Field.ROUTING_TYPE, Field.ROUTING_LEFT, Field.ROUTING_LENGTH),
    *(Field.ROUTING_LAST, Field.ROUTING_FLAGS, Field.ROUTING_TAG),
    *(Field.ROUTING_FIRST_ADDRESS, Field.ROUTING_SECOND_ADDRESS),
)
"""The order in which ``ip6tables-save`` prints the options."""
_HOPS: Final = 16
"""The most addresses of ``--rt-0-addrs`` (``IP6T_RT_HOPS``)."""


def _rt(options: Options, context: Context) -> tuple[Test, ...]:
    tests = [_within(Field.ROUTING_TYPE, 0, _BYTE, negated=False)]
    for index, option in enumerate(options):
        text = option.arguments[0] if option.arguments else ""
        match option.name:
            case "--rt-segsleft":
                low, high = parse_range(text, _MOST, option=index)
                tests.append(_within(Field.ROUTING_LEFT, low, high, negated=option.negated))
            case "--rt-type":
                number = parse_number(text, _MOST, option=index)
                tests.append(_within(Field.ROUTING_TYPE, number, number, negated=option.negated))
            case "--rt-0-res":
                _require_type_0(options, index, option.name)
                reserved = (Field.ROUTING_LAST, Field.ROUTING_FLAGS, Field.ROUTING_TAG)
                tests += [_within(field, 0, 0, negated=False) for field in reserved]
            case "--rt-0-addrs":
                _require_type_0(options, index, option.name)
                tests += _addresses(text, index)
            case _:
                units, rest = divmod(parse_number(text, _MOST, option=index), _UNIT)
                number = _MOST if rest or not units else units - 1
                tests.append(_within(Field.ROUTING_LENGTH, number, number, negated=option.negated))
    return tuple(sorted(tests[1:], key=lambda test: _ORDER.index(test.field)) or tests)


def _within(field: Field, low: int, high: int, *, negated: bool) -> FieldTest:
    """Return the test of a byte of the header; larger numbers never match."""
    return between(field, low, min(high, _BYTE), negated=negated, family=Family.IP6)


def _require_type_0(options: Options, index: int, name: str) -> None:
    """Raise OptionError unless ``--rt-type 0`` precedes the option, as ``rt_parse`` requires."""
    kind = options.find("--rt-type")
    if kind is None or kind[0] > index or kind[1].negated or unsigned(kind[1].arguments[0], _MOST) != 0:
        raise OptionError(f"{name} needs --rt-type 0 before it", option=index)


def _addresses(text: str, index: int) -> list[FieldTest]:
    """Return the tests that the header has these addresses and no more (``rt_mt6``)."""
    words = text.split(",")
    if len(words) > _HOPS:
        raise OptionError(f"--rt-0-addrs takes at most {_HOPS} addresses", option=index)
    addresses = []
    offset = 0
    for word in words:
        addresses.append(parse_canonical(Family.IP6, word, option=index, offset=offset))
        offset += len(word) + 1
    if len(addresses) > len(_ADDRESSES):
        what = f"--rt-0-addrs with more than {len(_ADDRESSES)} addresses, which nft does not read,"
        raise NotModelledError(what, option=index)
    units = 2 * len(addresses)
    tests = [_within(Field.ROUTING_LENGTH, units, units + 1, negated=False)]
    tests += [
        FieldTest(field=field, values=(Interval.point(address),))
        for field, address in zip(_ADDRESSES, addresses, strict=False)
    ]
    return tests


_ADDRESSES: Final = (Field.ROUTING_FIRST_ADDRESS, Field.ROUTING_SECOND_ADDRESS)

RT: Final = MatchExtension(
    name="rt",
    options=(
        OptionSpec(name="--rt-type", invertible=True),
        OptionSpec(name="--rt-segsleft", invertible=True),
        OptionSpec(name="--rt-len", invertible=True),
        OptionSpec(name="--rt-0-res", arguments=0),
        OptionSpec(name="--rt-0-addrs"),
        OptionSpec(
            name="--rt-0-not-strict",
            arguments=0,
            refused="nftables and the tc program do not search a routing header for addresses",
            kind="routing-search",
        ),
    ),
    meaning=_rt,
    family=Family.IP6,
)
"""``-m rt`` (``rt_mt6``): a packet without a routing header never matches, even if an option is negated."""
