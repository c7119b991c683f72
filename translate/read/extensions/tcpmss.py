"""``-j TCPMSS``: the maximum segment size in a SYN."""

from __future__ import annotations

from typing import Final

from translate.ir import LimitMss, Protocol
from translate.read.extensions.declaration import Context, Options, OptionSpec, TargetExtension
from translate.read.spelling.errors import OptionError
from translate.read.spelling.numbers import unsigned

__all__ = ["TCPMSS"]

_MOST: Final = 0xFFFF


def _tcpmss(options: Options, context: Context) -> LimitMss:
    if len(options) != 1:
        raise OptionError("TCPMSS needs one of its options", hint="--clamp-mss-to-pmtu or --set-mss 1400")
    context.require("TCPMSS", Protocol.TCP)
    option = options[0]
    if option.name == "--clamp-mss-to-pmtu":
        return LimitMss(None)
    value = unsigned(option.arguments[0], _MOST)
    if value is None:
        raise OptionError(f'"{option.arguments[0]}" is not a number from 0 to {_MOST}', option=0)
    return LimitMss(value)


TCPMSS: Final = TargetExtension(
    name="TCPMSS",
    options=(OptionSpec(name="--set-mss"), OptionSpec(name="--clamp-mss-to-pmtu", arguments=0)),
    meaning=_tcpmss,
)
"""``-j TCPMSS`` (``xt_TCPMSS``)."""
