"""``-m connbytes``: packets and bytes of the packet's connection."""

from __future__ import annotations

from typing import Final

from translate.ir import Field, Test
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    between,
    parse_range,
)
from translate.read.spelling.errors import OptionError

__all__ = ["CONNBYTES"]

_MOST: Final = (1 << 64) - 1
_DIRECTIONS: Final = {"original": "ORIGINAL_", "reply": "REPLY_", "both": ""}
_MODES: Final = {"packets": "PACKETS", "bytes": "BYTES", "avgpkt": "AVERAGE"}


def _word(options: Options, name: str, words: dict[str, str]) -> str:
    index, option = options.need(name, "connbytes")
    if option.arguments[0] not in words:
        raise OptionError(f'"{option.arguments[0]}" is not one of {", ".join(words)}', option=index)
    return words[option.arguments[0]]


def _connbytes(options: Options, context: Context) -> tuple[Test, ...]:
    index, option = options.need("--connbytes", "connbytes")
    direction = _word(options, "--connbytes-dir", _DIRECTIONS)
    field = Field[f"CT_{direction}{_word(options, '--connbytes-mode', _MODES)}"]
    text = option.arguments[0]
    low, high = parse_range(text, _MOST, option=index)
    if ":" not in text:
        high = _MOST
    if high < low:
        raise OptionError(f'range "{text}" ends before it begins', option=index)
    # xt_connbytes stores a negated range with its ends exchanged.
    negated = option.negated and low != high
    return (between(field, low, high, negated=negated, family=context.family),)


CONNBYTES: Final = MatchExtension(
    name="connbytes",
    options=(
        OptionSpec(name="--connbytes", invertible=True),
        OptionSpec(name="--connbytes-dir"),
        OptionSpec(name="--connbytes-mode"),
    ),
    meaning=_connbytes,
)
"""``-m connbytes`` (``xt_connbytes``).

It switches on ``net.netfilter.nf_conntrack_acct``, so that connections count from then on.
"""
