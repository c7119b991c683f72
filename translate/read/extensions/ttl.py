"""``-m ttl``, ``-m hl``, ``-j TTL`` and ``-j HL``: the TTL of IPv4, and the hop limit of IPv6."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from translate.ir import AddTtl, Family, Field, SetTtl, TableName, Test
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    TargetExtension,
    between,
    parse_number,
)
from translate.read.spelling.errors import OptionError

__all__ = ["HL_MATCH", "HL_TARGET", "TTL_MATCH", "TTL_TARGET"]

_MOST: Final = 0xFF


def _meaning(name: str) -> Callable[[Options, Context], tuple[Test, ...]]:
    def meaning(options: Options, context: Context) -> tuple[Test, ...]:
        if len(options) != 1:
            raise OptionError(f"{name} takes one of --{name}-eq, --{name}-lt and --{name}-gt")
        option = options[0]
        number = parse_number(option.arguments[0], _MOST, option=0)
        low, high = {f"--{name}-lt": (0, number - 1), f"--{name}-gt": (number + 1, _MOST)}.get(
            option.name, (number, number)
        )
        return (between(Field.TTL, low, high, negated=option.negated, family=context.family),)

    return meaning


def _match(name: str, family: Family) -> MatchExtension:
    """Return a match; only the longer name of its first option may be negated (``ttl_opts``, ``hl_opts``)."""
    options = (
        OptionSpec(name=f"--{name}-eq", invertible=True),
        *(OptionSpec(name=f"--{name}{end}") for end in ("-lt", "-gt", "")),
    )
    return MatchExtension(name=name, options=options, meaning=_meaning(name), family=family)


TTL_MATCH: Final = _match("ttl", Family.IP)
"""``-m ttl`` (``ttl_mt`` of ``xt_hl``)."""

HL_MATCH: Final = _match("hl", Family.IP6)
"""``-m hl`` (``hl_mt6`` of ``xt_hl``)."""


def _change(name: str) -> Callable[[Options, Context], SetTtl | AddTtl]:
    def change(options: Options, _context: Context) -> SetTtl | AddTtl:
        if len(options) != 1:
            raise OptionError(f"{name.upper()} takes one of --{name}-set, --{name}-dec and --{name}-inc")
        option = options[0]
        number = parse_number(option.arguments[0], _MOST, option=0)
        if option.name == f"--{name}-set":
            return SetTtl(number)
        if not number:
            raise OptionError(f"{option.name} needs a number from 1 to {_MOST}", option=0)
        return AddTtl(number if option.name == f"--{name}-inc" else -number)

    return change


def _target(name: str, family: Family) -> TargetExtension:
    return TargetExtension(
        name=name.upper(),
        options=tuple(OptionSpec(name=f"--{name}-{operation}") for operation in ("set", "dec", "inc")),
        meaning=_change(name),
        family=family,
        tables=frozenset({TableName.MANGLE}),
    )


TTL_TARGET: Final = _target("ttl", Family.IP)
"""``-j TTL`` (``ttl_tg``)."""

HL_TARGET: Final = _target("hl", Family.IP6)
"""``-j HL`` (``hl_tg6``)."""
