"""``-m esp``, ``-m ah`` and ``-m ipcomp``: the index of the security association in a header of IPsec."""

from __future__ import annotations

from typing import Final

from translate.ir import INDEX_PROTOCOLS, Family, Field, Option, Test, field_bits
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    between,
    parse_number,
    parse_range,
)
from translate.read.spelling.errors import OptionError

__all__ = ["AH", "ESP", "IPCOMP"]

_MOST: Final = 0xFFFFFFFF
_BYTE: Final = 0xFF
_WORD: Final = 4
"""The unit of the length of an AH header in bytes; its field does not count the first two units."""


def _index(name: str, field: Field, options: Options, context: Context) -> tuple[Test, ...]:
    """Return the test of the index. Without the option, ESP and AH match any index, and IPComp matches 0.

    ``libxt_ipcomp`` sets no default, so that both ends of its range are 0. Numbers above the largest value of
    the field, which ``-m ipcomp`` accepts, never match.
    """
    extends = field is Field.AH_SPI and context.family is Family.IP6  # AH is an extension header there
    if context.protocol != INDEX_PROTOCOLS[field] and not extends:
        raise OptionError(f'{name} needs "-p {name}" in the same rule')
    most = (1 << field_bits(field, context.family)) - 1
    low, high, negated = 0, 0 if field is Field.IPCOMP_CPI else most, False
    occurrence = options.find(f"--{name}spi")
    if occurrence is not None:
        index, option = occurrence
        low, high = parse_range(option.arguments[0], _MOST, option=index)
        negated = option.negated
    return (between(field, low, min(high, most), negated=negated, family=context.family),)


def _ah(options: Options, context: Context) -> tuple[Test, ...]:
    tests = [*_index("ah", Field.AH_SPI, options, context)]
    for index, option in enumerate(options):
        if option.name == "--ahspi":
            continue
        if context.family is Family.IP:
            raise OptionError(f"{option.name} is an option of IPv6", option=index)
        if option.name == "--ahres":
            tests.append(between(Field.AH_RESERVED, 0, 0, negated=False, family=context.family))
        else:
            tests += _length(option, index)
    return tuple(tests)


def _length(option: Option, index: int) -> tuple[Test, ...]:
    """Return the test of a length in bytes; 0 is any length, also negated (``ah_mt6``)."""
    number = parse_number(option.arguments[0], _MOST, option=index)
    if not number:
        return ()
    words, rest = divmod(number, _WORD)
    low, high = (words - 2, words - 2) if not rest and 2 <= words <= _BYTE + 2 else (1, 0)
    return (between(Field.AH_LENGTH, low, high, negated=option.negated, family=Family.IP6),)


ESP: Final = MatchExtension(
    name="esp",
    options=(OptionSpec(name="--espspi", invertible=True),),
    meaning=lambda options, context: _index("esp", Field.ESP_SPI, options, context),
)
"""``-m esp`` (``xt_esp``)."""

AH: Final = MatchExtension(
    name="ah",
    options=(
        OptionSpec(name="--ahspi", invertible=True),
        OptionSpec(name="--ahlen", invertible=True),
        OptionSpec(name="--ahres", arguments=0),
    ),
    meaning=_ah,
)
"""``-m ah`` (``ipt_ah``, ``ip6t_ah``). Only that of IPv6 has the options about length and reserved bytes."""

IPCOMP: Final = MatchExtension(
    name="ipcomp",
    options=(OptionSpec(name="--ipcompspi", invertible=True), OptionSpec(name="--compres", arguments=0)),
    meaning=lambda options, context: _index("ipcomp", Field.IPCOMP_CPI, options, context),
)
"""``-m ipcomp`` (``xt_ipcomp``, which does not look at ``--compres``)."""
