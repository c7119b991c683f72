"""``-j SNPT`` and ``-j DNPT``: prefixes of IPv6 addresses, one for another (RFC 6296)."""

from __future__ import annotations

from typing import Final

from translate.ir import Family, Hook, TableName, TranslatePrefix, parse_address
from translate.read.extensions.declaration import (
    Context,
    Options,
    OptionSpec,
    TargetExtension,
    parse_number,
)
from translate.read.spelling.errors import OptionError

__all__ = ["DNPT", "SNPT"]

_MOST: Final = 64
"""The longest prefix (``ip6t_npt_checkentry``)."""


def _prefix(options: Options, name: str, extension: str) -> tuple[int, int]:
    occurrence = options.find(name)
    if occurrence is None:
        hint = "iptables-save leaves out ::/0, and no version of iptables reads the rule without it"
        raise OptionError(f'{extension} needs the option "{name}"', hint=hint)
    index, option = occurrence
    text, slash, length_text = option.arguments[0].partition("/")
    try:
        address = parse_address(Family.IP6, text)
    except ValueError:
        raise OptionError(f'"{text}" is not an IPv6 address', option=index) from None
    length = Family.IP6.bits
    if slash:
        length = parse_number(length_text, Family.IP6.bits, option=index, offset=len(text) + 1)
    if length > _MOST:
        raise OptionError(f"a prefix of {length} bits, but at most {_MOST} are taken", option=index)
    if address & (1 << Family.IP6.bits - length) - 1:
        raise OptionError(f"bits after the prefix of {length} bits", option=index)
    return address, length


def _target(name: str, *, source: bool, hooks: frozenset[Hook]) -> TargetExtension:
    def meaning(options: Options, _context: Context) -> TranslatePrefix:
        old, old_bits = _prefix(options, "--src-pfx", name)
        new, new_bits = _prefix(options, "--dst-pfx", name)
        bits = max(old_bits, new_bits)
        return TranslatePrefix(source=source, old=old, old_bits=old_bits, new=new, bits=bits)

    return TargetExtension(
        name=name,
        options=(OptionSpec(name="--src-pfx"), OptionSpec(name="--dst-pfx")),
        meaning=meaning,
        family=Family.IP6,
        tables=frozenset({TableName.MANGLE}),
        hooks=hooks,
    )


SNPT: Final = _target("SNPT", source=True, hooks=frozenset({Hook.INPUT, Hook.POSTROUTING}))
"""``-j SNPT`` (``ip6t_snpt_tg``)."""

DNPT: Final = _target("DNPT", source=False, hooks=frozenset({Hook.PREROUTING, Hook.OUTPUT}))
"""``-j DNPT`` (``ip6t_dnpt_tg``)."""
