"""``-m length``: the length of the IP packet."""

from __future__ import annotations

from typing import Final

from translate.ir import Field, Test
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    between,
    parse_range,
)

__all__ = ["LENGTH"]


def _length(options: Options, context: Context) -> tuple[Test, ...]:
    index, option = options.need("--length", "length")
    low, high = parse_range(option.arguments[0], 0xFFFF, option=index)
    return (between(Field.LENGTH, low, high, negated=option.negated, family=context.family),)


LENGTH: Final = MatchExtension(
    name="length", options=(OptionSpec(name="--length", invertible=True),), meaning=_length
)
"""``-m length`` (``xt_length``)."""
