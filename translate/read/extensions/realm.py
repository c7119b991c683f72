"""``-m realm``: the realm of a packet's route."""

from __future__ import annotations

from typing import Final

from translate.ir import Family, Field, FieldTest, Hook, Interval, Test
from translate.read.extensions.declaration import (
    MARK_BITS,
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    parse_value_mask,
)
from translate.read.spelling.errors import NotModelledError

__all__ = ["REALM"]

_NAMES: Final = {"cosmos": 0}
"""The only name that every node has (``/etc/iproute2/rt_realms``)."""


def _realm(options: Options, _context: Context) -> tuple[Test, ...]:
    index, option = options.need("--realm", "realm")
    text = option.arguments[0]
    if text in _NAMES:
        value, mask = _NAMES[text], MARK_BITS
    elif text[:1].isdigit() or not text:
        value, mask = parse_value_mask(option, index=index)
    else:
        raise NotModelledError(f'the name of a realm, "{text}", which only the node knows,', option=index)
    bits = None if mask == MARK_BITS else mask
    return (FieldTest(field=Field.REALM, values=(Interval.point(value),), mask=bits, negated=option.negated),)


REALM: Final = MatchExtension(
    name="realm",
    options=(OptionSpec(name="--realm", invertible=True),),
    meaning=_realm,
    family=Family.IP,
    hooks=frozenset({Hook.INPUT, Hook.FORWARD, Hook.OUTPUT, Hook.POSTROUTING}),
)
"""``-m realm`` (``xt_realm``)."""
