"""``-m dscp``, ``-m tos``, ``-j DSCP`` and ``-j TOS``: the TOS of IPv4, and the traffic class of IPv6."""

from __future__ import annotations

from typing import Final

from translate.ir import Field, FieldTest, Interval, Option, SetTos, TableName, Test
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    TargetExtension,
    parse_number,
)
from translate.read.spelling.errors import OptionError
from translate.read.spelling.numbers import unsigned_start

__all__ = ["DSCP_MATCH", "DSCP_TARGET", "TOS_MATCH", "TOS_TARGET"]

_BYTE: Final = 0xFF
_DSCP_MASK: Final = 0xFC
_DSCP_SHIFT: Final = 2
_MOST_DSCP: Final = 0x3F
_CLASSES: Final = {
    **{f"CS{n}": n << 3 for n in range(8)},
    "BE": 0,
    **{f"AF{n}{drop}": n << 3 | drop << 1 for n in range(1, 5) for drop in range(1, 4)},
    "EF": 0x2E,
}
"""The names of classes (``dscp_helper.c``); text after a name is ignored."""

_SERVICES: Final = {
    "minimize-delay": 0x10,
    "maximize-throughput": 0x08,
    "maximize-reliability": 0x04,
    "minimize-cost": 0x02,
    "normal-service": 0x00,
}
_SERVICE_MASK: Final = 0x3F


def _dscp_of(options: Options, name: str, extension: str) -> Option:
    """Return the only option of an extension, which has a number or the name of a class."""
    if len(options) != 1:
        raise OptionError(f"{extension} takes one of {name} and {name}-class")
    return options[0]


def _dscp_value(option: Option) -> int:
    """Return the value of ``--dscp`` or ``--set-dscp``, with or without ``-class``."""
    text = option.arguments[0]
    if not option.name.endswith("-class"):
        return parse_number(text, _MOST_DSCP, option=0)
    for name, value in _CLASSES.items():
        if text.upper().startswith(name):
            return value
    raise OptionError(f'"{text}" is not a DSCP class', option=0, hint="known are BE, EF, CS0-CS7, AF11-AF43")


def _value_mask(option: Option) -> tuple[int, int]:
    """Return the numbers of ``value[/mask]``, or those of a name (``xtopt_parse_tosmask``)."""
    text = option.arguments[0]
    if unsigned_start(text, _BYTE)[0] is None:
        value = _SERVICES.get(text.lower())
        if value is None:
            raise OptionError(f'"{text}" is not a TOS', option=0, hint="a number from 0 to 0xff, or a name")
        return value, _SERVICE_MASK
    value_text, slash, mask_text = text.partition("/")
    value = parse_number(value_text, _BYTE, option=0)
    mask = parse_number(mask_text, _BYTE, option=0, offset=len(value_text) + 1) if slash else _BYTE
    return value, mask


def _test(value: int, mask: int, *, negated: bool) -> tuple[Test, ...]:
    return (
        FieldTest(
            field=Field.TOS,
            values=(Interval.point(value),),
            mask=None if mask == _BYTE else mask,
            negated=negated,
        ),
    )


def _dscp_match(options: Options, _context: Context) -> tuple[Test, ...]:
    option = _dscp_of(options, "--dscp", "dscp")
    return _test(_dscp_value(option) << _DSCP_SHIFT, _DSCP_MASK, negated=option.negated)


def _tos_match(options: Options, _context: Context) -> tuple[Test, ...]:
    _, option = options.need("--tos", "tos")
    value, mask = _value_mask(option)
    return _test(value, mask, negated=option.negated)


def _dscp_target(options: Options, _context: Context) -> SetTos:
    option = _dscp_of(options, "--set-dscp", "DSCP")
    return SetTos(_dscp_value(option) << _DSCP_SHIFT, _DSCP_MASK)


def _tos_target(options: Options, _context: Context) -> SetTos:
    if len(options) != 1:
        raise OptionError("TOS takes one of --set-tos, --and-tos, --or-tos and --xor-tos")
    option = options[0]
    if option.name == "--set-tos":
        return SetTos(*_value_mask(option))
    bits = parse_number(option.arguments[0], _BYTE, option=0)
    match option.name:
        case "--and-tos":
            return SetTos(0, _BYTE ^ bits)
        case "--or-tos":
            return SetTos(bits, bits)
        case _:
            return SetTos(bits, 0)


DSCP_MATCH: Final = MatchExtension(
    name="dscp",
    options=(OptionSpec(name="--dscp", invertible=True), OptionSpec(name="--dscp-class", invertible=True)),
    meaning=_dscp_match,
)
"""``-m dscp`` (``xt_dscp``)."""

TOS_MATCH: Final = MatchExtension(
    name="tos", options=(OptionSpec(name="--tos", invertible=True),), meaning=_tos_match
)
"""``-m tos`` (``tos_mt`` of ``xt_dscp``)."""

DSCP_TARGET: Final = TargetExtension(
    name="DSCP",
    options=(OptionSpec(name="--set-dscp"), OptionSpec(name="--set-dscp-class")),
    meaning=_dscp_target,
    tables=frozenset({TableName.MANGLE}),
)
"""``-j DSCP`` (``dscp_tg``)."""

TOS_TARGET: Final = TargetExtension(
    name="TOS",
    options=tuple(OptionSpec(name=name) for name in ("--set-tos", "--and-tos", "--or-tos", "--xor-tos")),
    meaning=_tos_target,
    tables=frozenset({TableName.MANGLE}),
)
"""``-j TOS`` (``tos_tg``)."""
