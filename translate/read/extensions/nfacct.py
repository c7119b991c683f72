"""``-m nfacct``: an accounting object that counts packets; it matches every packet."""

from __future__ import annotations

from typing import Final

from translate.ir import Account, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec
from translate.read.spelling.errors import OptionError

__all__ = ["NFACCT"]

_LONGEST_NAME: Final = 31  # NFACCT_NAME_MAX, less its NUL


def _nfacct(options: Options, _context: Context) -> tuple[Test, ...]:
    index, option = options.need("--nfacct-name", "nfacct")
    text = option.arguments[0]
    if not text:
        raise OptionError("the name of an nfacct object needs at least one character", option=index)
    name = text.encode("utf-8", "surrogateescape")[:_LONGEST_NAME].decode("utf-8", "surrogateescape")
    return (Account(name=name),)


NFACCT: Final = MatchExtension(name="nfacct", options=(OptionSpec(name="--nfacct-name"),), meaning=_nfacct)
"""``-m nfacct`` (``xt_nfacct``), for objects without a quota."""
