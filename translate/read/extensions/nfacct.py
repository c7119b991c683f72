"""``-m nfacct``: counts in an accounting object, and matches every packet."""

from __future__ import annotations

from typing import Final

from translate.ir import Account, Test
from translate.read.declaration import Context, Given, MatchExtension, OptionError, OptionSpec

__all__ = ["NFACCT"]

_LONGEST_NAME: Final = 31  # NFACCT_NAME_MAX, less its NUL


def _nfacct(given: Given, _context: Context) -> tuple[Test, ...]:
    index, option = given.need("--nfacct-name", "nfacct")
    name = option.arguments[0]
    if not 1 <= len(name.encode("utf-8", "surrogateescape")) <= _LONGEST_NAME:
        raise OptionError(f"the name of an nfacct object has 1 to {_LONGEST_NAME} bytes", option=index)
    return (Account(name=name),)


NFACCT: Final = MatchExtension(name="nfacct", options=(OptionSpec(name="--nfacct-name"),), meaning=_nfacct)
"""``-m nfacct`` (``xt_nfacct``), for objects without a quota."""
