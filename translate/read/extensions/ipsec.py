"""``-m esp``, ``-m ah`` and ``-m ipcomp``: the index of the security association in a header of IPsec."""

from __future__ import annotations

from typing import Final

from translate.ir import INDEX_PROTOCOLS, Family, Field, Test, field_bits
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    between,
    parse_range,
)
from translate.read.spelling.errors import OptionError

__all__ = ["AH", "ESP", "IPCOMP"]

_MOST: Final = 0xFFFFFFFF
_AUTHENTICATED: Final = "the length and the reserved field of an AH header are not modelled"


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
        OptionSpec(name="--ahlen", invertible=True, refused=_AUTHENTICATED),
        OptionSpec(name="--ahres", arguments=0, refused=_AUTHENTICATED),
    ),
    meaning=lambda options, context: _index("ah", Field.AH_SPI, options, context),
)
"""``-m ah`` (``ipt_ah``, ``ip6t_ah``)."""

IPCOMP: Final = MatchExtension(
    name="ipcomp",
    options=(OptionSpec(name="--ipcompspi", invertible=True), OptionSpec(name="--compres", arguments=0)),
    meaning=lambda options, context: _index("ipcomp", Field.IPCOMP_CPI, options, context),
)
"""``-m ipcomp`` (``xt_ipcomp``, which does not look at ``--compres``)."""
