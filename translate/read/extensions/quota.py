"""``-m quota``: a limit of the bytes in all packets that reach the rule."""

from __future__ import annotations

from typing import Final

from translate.ir import Quota, Test
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    parse_number,
)

__all__ = ["QUOTA"]

_MOST: Final = (1 << 64) - 1


def _quota(options: Options, _context: Context) -> tuple[Test, ...]:
    index, option = options.need("--quota", "quota")
    size = parse_number(option.arguments[0], _MOST, option=index)
    return (Quota(size=size, negated=option.negated),)


QUOTA: Final = MatchExtension(
    name="quota", options=(OptionSpec(name="--quota", invertible=True),), meaning=_quota
)
"""``-m quota`` (``xt_quota``)."""
