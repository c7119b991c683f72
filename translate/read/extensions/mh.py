"""``-m mh``: the type of the message in a Mobility Header of IPv6 (RFC 6275)."""

from __future__ import annotations

from typing import Final

from translate.ir import MOBILITY, Family, Field, Test
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    between,
    parse_number,
)
from translate.read.spelling.errors import OptionError

__all__ = ["MH", "MH_NAMES"]

_MOST: Final = 0xFF
MH_NAMES: Final = {
    "binding-refresh-request": 0,
    "brr": 0,
    "home-test-init": 1,
    "hoti": 1,
    "careof-test-init": 2,
    "coti": 2,
    "home-test": 3,
    "hot": 3,
    "careof-test": 4,
    "cot": 4,
    "binding-update": 5,
    "bu": 5,
    "binding-acknowledgement": 6,
    "ba": 6,
    "binding-error": 7,
    "be": 7,
}
"""The types by their names, in the order in which ``libip6t_mh`` looks for the beginning of one."""


def _mh(options: Options, context: Context) -> tuple[Test, ...]:
    if context.protocol != MOBILITY:
        raise OptionError('mh needs "-p mobility-header" in the same rule')
    occurrence = options.find("--mh-type")
    if occurrence is None:
        return (between(Field.MH_TYPE, 0, _MOST, negated=False, family=context.family),)
    index, option = occurrence
    first, colon, last = option.arguments[0].partition(":")
    low = _type(first, index=index, offset=0) if first or not colon else 0
    high = low
    if colon:
        high = _type(last, index=index, offset=len(first) + 1) if last else _MOST
    if low > high:
        raise OptionError("the range of types ends before it begins", option=index)
    return (between(Field.MH_TYPE, low, high, negated=option.negated, family=context.family),)


def _type(text: str, *, index: int, offset: int) -> int:
    """Return the type of a name, of the beginning of one, or a number (``name_to_type``)."""
    folded = text.lower()
    if folded in MH_NAMES:
        return MH_NAMES[folded]
    begun = (number for name, number in MH_NAMES.items() if name.startswith(folded))
    number = next(begun, None)
    return parse_number(text, _MOST, option=index, offset=offset) if number is None else number


MH: Final = MatchExtension(
    name="mh",
    options=(OptionSpec(name="--mh-type", invertible=True),),
    meaning=_mh,
    family=Family.IP6,
)
"""``-m mh`` (``mh_mt6``), which drops a packet whose header has another protocol after it than "none"."""
