"""``-m connmark`` and ``-j CONNMARK``: the mark of the packet's connection."""

from __future__ import annotations

from typing import Final

from translate.ir import Action, Field, FieldTest, Interval, RestoreMark, SaveMark, SetConnmark, Test
from translate.read.declaration import (
    MARK_BITS,
    Context,
    Given,
    MatchExtension,
    OptionError,
    OptionSpec,
    TargetExtension,
    parse_mark,
    parse_value_mask,
)

__all__ = ["CONNMARK_MATCH", "CONNMARK_TARGET"]

_MASKS: Final = ("--nfmask", "--ctmask", "--mask")


def _match(given: Given, _context: Context) -> tuple[Test, ...]:
    index, option = given.need("--mark", "connmark")
    value, mask = parse_value_mask(option, index=index)
    return (
        FieldTest(
            field=Field.CT_MARK,
            values=(Interval.point(value),),
            mask=None if mask == MARK_BITS else mask,
            negated=option.negated,
        ),
    )


def _target(given: Given, _context: Context) -> Action:
    modes = [(i, o) for i, o in enumerate(given.options) if o.name not in _MASKS]
    if not modes:
        raise OptionError("CONNMARK needs one of its options", hint="for example --restore-mark")
    if len(modes) > 1:
        raise OptionError(
            f'CONNMARK does not take "{modes[1][1].name}" as well', option=modes[1][0], argument=0
        )
    index, mode = modes[0]
    if mode.name in ("--save-mark", "--restore-mark"):
        nfmask, ctmask = _masks(given)
        return SaveMark(nfmask, ctmask) if mode.name == "--save-mark" else RestoreMark(nfmask, ctmask)
    for at, option in enumerate(given.options):
        if at != index:
            raise OptionError(
                f'"{option.name}" goes with --save-mark and --restore-mark', option=at, argument=0
            )
    if mode.name in ("--set-mark", "--set-xmark"):
        value, mask = parse_value_mask(mode, index=index)
        return SetConnmark(value, value | mask if mode.name == "--set-mark" else mask)
    bits = parse_mark(mode.arguments[0], option=index)
    match mode.name:
        case "--and-mark":
            return SetConnmark(0, MARK_BITS ^ bits)
        case "--or-mark":
            return SetConnmark(bits, bits)
        case _:
            return SetConnmark(bits, 0)


def _masks(given: Given) -> tuple[int, int]:
    """Return the masks of the packet's and of the connection's mark; all bits where not given."""
    both = given.find("--mask")
    masks = []
    for name in ("--nfmask", "--ctmask"):
        found = given.find(name)
        if found is not None and both is not None:
            raise OptionError(f'"--mask" and "{name}" exclude each other', option=both[0], argument=0)
        found = found or both
        masks.append(MARK_BITS if found is None else parse_mark(found[1].arguments[0], option=found[0]))
    return masks[0], masks[1]


CONNMARK_MATCH: Final = MatchExtension(
    name="connmark", options=(OptionSpec(name="--mark", invertible=True),), meaning=_match
)
"""``-m connmark`` (``xt_connmark``)."""

_SHIFTED: Final = "shifted marks are not modelled"

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
        OptionSpec(name="--left-shift-mark", refused=_SHIFTED),
        OptionSpec(name="--right-shift-mark", refused=_SHIFTED),
    ),
    meaning=_target,
)
"""``-j CONNMARK`` (``connmark_tg`` of ``xt_connmark``, ``libxt_CONNMARK``)."""
