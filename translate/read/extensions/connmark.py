"""``-m connmark`` and ``-j CONNMARK``: the mark of the packet's connection."""

from __future__ import annotations

from typing import Final

from translate.ir import Action, Field, RestoreMark, SaveMark, SetConnmark, Test
from translate.read.extensions.declaration import (
    MARK_BITS,
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    TargetExtension,
    mark_test,
    parse_mark,
    parse_number,
    parse_value_mask,
)
from translate.read.spelling.errors import OptionError

__all__ = ["CONNMARK_MATCH", "CONNMARK_TARGET"]

_MASKS: Final = ("--nfmask", "--ctmask", "--mask")
_SHIFTS: Final = {"--left-shift-mark": 1, "--right-shift-mark": -1}
_MOST_SHIFT: Final = 31


def _match(options: Options, _context: Context) -> tuple[Test, ...]:
    return (mark_test(options, Field.CT_MARK, "connmark"),)


def _target(options: Options, _context: Context) -> Action:
    modes = [(i, o) for i, o in enumerate(options) if o.name not in _MASKS and o.name not in _SHIFTS]
    if not modes:
        raise OptionError("CONNMARK needs one of its options", hint="for example --restore-mark")
    if len(modes) > 1:
        raise OptionError(
            f'CONNMARK does not take "{modes[1][1].name}" as well', option=modes[1][0], argument=0
        )
    mode = modes[0][1]
    if any(option.name == "--mask" for option in options):
        for index, option in enumerate(options):
            if option.name in ("--nfmask", "--ctmask"):
                raise OptionError(
                    f'"--mask" and "{option.name}" exclude each other', option=index, argument=0
                )
    value, ctmask, nfmask, shift = 0, MARK_BITS, MARK_BITS, 0
    for index, option in enumerate(options):  # each overwrites the one before
        match option.name:
            case "--set-mark" | "--set-xmark":
                value, ctmask = parse_value_mask(option, index=index)
                ctmask |= value if option.name == "--set-mark" else 0
            case "--save-mark" | "--restore-mark":
                pass
            case name if name in _SHIFTS:
                shift = _SHIFTS[name] * parse_number(option.arguments[0], _MOST_SHIFT, option=index)
            case _:
                bits = parse_mark(option.arguments[0], option=index)
                value, ctmask, nfmask = _written(option.name, bits, value, ctmask, nfmask)
    match mode.name:
        case "--save-mark":
            return SaveMark(nfmask, ctmask, shift)
        case "--restore-mark":
            return RestoreMark(nfmask, ctmask, shift)
        case _ if ctmask == MARK_BITS:
            return SetConnmark(value << shift & MARK_BITS if shift > 0 else value >> -shift, ctmask)
        case _:
            return SetConnmark(value, ctmask, shift)


def _written(name: str, bits: int, value: int, ctmask: int, nfmask: int) -> tuple[int, int, int]:
    """Return the mark and the masks of an option with one number (``connmark_tg_parse``)."""
    match name:
        case "--and-mark":
            return 0, MARK_BITS ^ bits, nfmask
        case "--or-mark":
            return bits, bits, nfmask
        case "--xor-mark":
            return bits, 0, nfmask
        case "--ctmask":
            return value, bits, nfmask
        case "--nfmask":
            return value, ctmask, bits
        case _:
            return value, bits, bits


CONNMARK_MATCH: Final = MatchExtension(
    name="connmark", options=(OptionSpec(name="--mark", invertible=True),), meaning=_match
)
"""``-m connmark`` (``xt_connmark``)."""

CONNMARK_TARGET: Final = TargetExtension(
    name="CONNMARK",
    options=(
        *(
            OptionSpec(name=name)
            for name in ("--set-xmark", "--set-mark", "--and-mark", "--or-mark", "--xor-mark")
        ),
        OptionSpec(name="--save-mark", arguments=0),
        OptionSpec(name="--restore-mark", arguments=0),
        *(OptionSpec(name=name) for name in _MASKS),
        *(OptionSpec(name=name) for name in _SHIFTS),
    ),
    meaning=_target,
)
"""``-j CONNMARK`` (``connmark_tg`` of ``xt_connmark``, ``libxt_CONNMARK``)."""
