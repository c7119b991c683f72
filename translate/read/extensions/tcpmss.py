"""``-m tcpmss`` and ``-j TCPMSS``: the maximum segment size in a SYN."""

from __future__ import annotations

from typing import Final

from translate.ir import AnyOf, Field, FieldTest, Interval, LimitMss, Protocol, Test
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    TargetExtension,
    parse_range,
)
from translate.read.spelling.errors import OptionError
from translate.read.spelling.numbers import unsigned

__all__ = ["TCPMSS_MATCH", "TCPMSS_TARGET"]

_MOST: Final = 0xFFFF


def _target(options: Options, context: Context) -> LimitMss:
    if len(options) != 1:
        raise OptionError("TCPMSS needs one of its options", hint="--clamp-mss-to-pmtu or --set-mss 1400")
    context.require("TCPMSS", Protocol.TCP)
    option = options[0]
    if option.name == "--clamp-mss-to-pmtu":
        return LimitMss(None)
    value = unsigned(option.arguments[0], _MOST)
    if value is None:
        raise OptionError(f'"{option.arguments[0]}" is not a number from 0 to {_MOST}', option=0)
    return LimitMss(value)


def _match(options: Options, context: Context) -> tuple[Test, ...]:
    context.require("tcpmss", Protocol.TCP)
    index, option = options.need("--mss", "tcpmss")
    low, high = parse_range(option.arguments[0], _MOST, option=index)
    if low > high:
        raise OptionError(f'range "{option.arguments[0]}" ends before it begins', option=index)
    test = FieldTest(field=Field.TCP_MSS, values=(Interval(low, high),), reads_data=True)
    return (AnyOf(tests=(test,), negated=True) if option.negated else test,)


TCPMSS_MATCH: Final = MatchExtension(
    name="tcpmss", options=(OptionSpec(name="--mss", invertible=True),), meaning=_match
)
"""``-m tcpmss``: negated, it also holds for a segment without the option (``tcpmss_mt``)."""

TCPMSS_TARGET: Final = TargetExtension(
    name="TCPMSS",
    options=(OptionSpec(name="--set-mss"), OptionSpec(name="--clamp-mss-to-pmtu", arguments=0)),
    meaning=_target,
)
"""``-j TCPMSS`` (``xt_TCPMSS``)."""
