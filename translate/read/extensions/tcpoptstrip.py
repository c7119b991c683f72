"""``-j TCPOPTSTRIP``: TCP options that are overwritten by NOPs."""

from __future__ import annotations

from typing import Final

from translate.ir import Protocol, StripOptions, TableName
from translate.read.extensions.declaration import Context, Options, OptionSpec, TargetExtension
from translate.read.spelling.errors import OptionError
from translate.read.spelling.numbers import unsigned

__all__ = ["TCPOPTSTRIP"]

_NAMES: Final = {"wscale": 3, "mss": 2, "sack-permitted": 4, "sack": 5, "timestamp": 8, "md5": 19}
_FIRST: Final = 2
"""The lowest kind that can be stripped; 0 ends the list of options, and 1 is NOP."""


def _tcpoptstrip(options: Options, context: Context) -> StripOptions:
    context.require("TCPOPTSTRIP", Protocol.TCP)
    occurrence = options.find("--strip-options")
    if occurrence is None:
        return StripOptions(())
    index, option = occurrence
    numbers: list[int] = []
    offset = 0
    for text in option.arguments[0].split(","):
        number = _NAMES.get(text, unsigned(text, 255))
        if number is None or number < _FIRST:
            message = f'"{text}" is not a TCP option that can be stripped'
            raise OptionError(message, option=index, offset=offset, hint=f"2 to 255, or {', '.join(_NAMES)}")
        if number in numbers:
            raise OptionError(f'option "{text}" is named twice', option=index, offset=offset)
        numbers.append(number)
        offset += len(text) + 1
    return StripOptions(tuple(sorted(numbers)))


TCPOPTSTRIP: Final = TargetExtension(
    name="TCPOPTSTRIP",
    options=(OptionSpec(name="--strip-options"),),
    meaning=_tcpoptstrip,
    tables=frozenset({TableName.MANGLE}),
)
"""``-j TCPOPTSTRIP`` (``xt_TCPOPTSTRIP``)."""
