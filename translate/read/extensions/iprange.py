"""``-m iprange``: a range of addresses."""

from __future__ import annotations

from typing import Final

from translate.ir import Field, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec, between
from translate.read.spelling.address import parse_numeric
from translate.read.spelling.errors import OptionError

__all__ = ["IPRANGE"]

_FIELDS: Final = {"--src-range": Field.SADDR, "--dst-range": Field.DADDR}


def _iprange(options: Options, context: Context) -> tuple[Test, ...]:
    if not options:
        raise OptionError("iprange needs --src-range or --dst-range")
    tests = []
    for index, option in enumerate(options):
        text = option.arguments[0]
        low_text, dash, high_text = text.partition("-")
        low = parse_numeric(context.family, low_text, option=index)
        after = len(low_text) + 1
        high = parse_numeric(context.family, high_text, option=index, offset=after) if dash else low
        tests.append(between(_FIELDS[option.name], low, high, negated=option.negated, family=context.family))
    return tuple(tests)


IPRANGE: Final = MatchExtension(
    name="iprange",
    options=tuple(OptionSpec(name=name, invertible=True) for name in _FIELDS),
    meaning=_iprange,
)
"""``-m iprange`` (``xt_iprange``)."""
