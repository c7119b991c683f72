"""``-m mark`` and ``-j MARK``: the packet's mark."""

from __future__ import annotations

from typing import Final

from translate.ir import Field, SetMark, Test
from translate.read.extensions.declaration import (
    MARK_BITS,
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    TargetExtension,
    mark_test,
    parse_mark,
    parse_value_mask,
)
from translate.read.spelling.errors import OptionError

__all__ = ["MARK_MATCH", "MARK_TARGET"]


def _match(options: Options, _context: Context) -> tuple[Test, ...]:
    return (mark_test(options, Field.MARK, "mark"),)


def _target(options: Options, _context: Context) -> SetMark:
    if not options:
        raise OptionError("MARK needs one of its options", hint="for example --set-xmark 0x1/0x1")
    if len(options) > 1:
        raise OptionError("MARK takes one option", option=1, argument=0)
    option = options[0]
    if option.name in ("--set-mark", "--set-xmark"):
        value, mask = parse_value_mask(option, index=0)
        return SetMark(value, value | mask if option.name == "--set-mark" else mask)
    bits = parse_mark(option.arguments[0], option=0)
    match option.name:
        case "--and-mark":
            return SetMark(0, MARK_BITS ^ bits)
        case "--or-mark":
            return SetMark(bits, bits)
        case _:
            return SetMark(bits, 0)


MARK_MATCH: Final = MatchExtension(
    name="mark", options=(OptionSpec(name="--mark", invertible=True),), meaning=_match
)
"""``-m mark`` (``xt_mark``)."""

MARK_TARGET: Final = TargetExtension(
    name="MARK",
    options=tuple(
        OptionSpec(name=name)
        for name in ("--set-xmark", "--set-mark", "--and-mark", "--or-mark", "--xor-mark")
    ),
    meaning=_target,
)
"""``-j MARK``; the five options are five ways to write one value and mask (``libxt_MARK``)."""
