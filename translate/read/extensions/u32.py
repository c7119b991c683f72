"""``-m u32``: words of a packet, at any offset."""

from __future__ import annotations

from typing import Final

from translate.ir import Test, WordError, WordTest, read_words
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec
from translate.read.spelling.errors import OptionError

__all__ = ["U32"]


def _u32(options: Options, _context: Context) -> tuple[Test, ...]:
    index, option = options.need("--u32", "u32")
    try:
        words = read_words(option.arguments[0])
    except WordError as e:
        hint = "such as 6&0xFF=1 && 0>>22&0x3C@0>>24=8,13:14"
        raise OptionError(f"--u32: {e}", option=index, offset=e.offset, hint=hint) from None
    return (WordTest(words=words, negated=option.negated),)


U32: Final = MatchExtension(name="u32", options=(OptionSpec(name="--u32", invertible=True),), meaning=_u32)
"""``-m u32`` (``xt_u32``)."""
