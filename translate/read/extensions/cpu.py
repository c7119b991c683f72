"""``-m cpu``: the processor that handles a packet."""

from __future__ import annotations

from typing import Final

from translate.ir import Field, FieldTest, Interval, Test
from translate.read.extensions.declaration import (
    MARK_BITS,
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    parse_number,
)

__all__ = ["CPU"]


def _cpu(options: Options, _context: Context) -> tuple[Test, ...]:
    index, option = options.need("--cpu", "cpu")
    number = parse_number(option.arguments[0], MARK_BITS, option=index)
    return (FieldTest(field=Field.CPU, values=(Interval.point(number),), negated=option.negated),)


CPU: Final = MatchExtension(name="cpu", options=(OptionSpec(name="--cpu", invertible=True),), meaning=_cpu)
"""``-m cpu`` (``cpu_mt``)."""
