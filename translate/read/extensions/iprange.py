"""``-m iprange``: addresses from one to another."""

from __future__ import annotations

from typing import Final

from translate.ir import Field, FieldTest, Interval, Test
from translate.read.address import parse_host
from translate.read.declaration import Context, Given, MatchExtension, OptionError, OptionSpec

__all__ = ["IPRANGE"]

_FIELDS: Final = {"--src-range": Field.SADDR, "--dst-range": Field.DADDR}


def _iprange(given: Given, context: Context) -> tuple[Test, ...]:
    if not given.options:
        raise OptionError("iprange needs --src-range or --dst-range")
    tests = []
    for index, option in enumerate(given.options):
        text = option.arguments[0]
        low_text, dash, high_text = text.partition("-")
        low = parse_host(context.family, low_text, option=index)
        after = len(low_text) + 1
        high = parse_host(context.family, high_text, option=index, offset=after) if dash else low
        if low > high:
            raise OptionError(f'address range "{text}" ends before it begins', option=index)
        values = (Interval(low, high),)
        tests.append(FieldTest(field=_FIELDS[option.name], values=values, negated=option.negated))
    return tuple(tests)


IPRANGE: Final = MatchExtension(
    name="iprange",
    options=tuple(OptionSpec(name=name, invertible=True) for name in _FIELDS),
    meaning=_iprange,
)
"""``-m iprange`` (``xt_iprange``)."""
