"""``-m comment``: a comment, which matches every packet."""

from __future__ import annotations

from typing import Final

from translate.ir import Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec
from translate.read.spelling.errors import OptionError

__all__ = ["COMMENT"]

_LONGEST: Final = 256  # XT_MAX_COMMENT_LEN, which includes the NUL


def _comment(options: Options, _context: Context) -> tuple[Test, ...]:
    index, option = options.need("--comment", "comment")
    text = option.arguments[0]
    length = len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))
    if length > _LONGEST:
        raise OptionError(f"a comment of {length} bytes exceeds iptables' limit of {_LONGEST}", option=index)
    return ()


COMMENT: Final = MatchExtension(name="comment", options=(OptionSpec(name="--comment"),), meaning=_comment)
"""``-m comment`` (``xt_comment``)."""
