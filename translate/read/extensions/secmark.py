"""Labels for a security module: ``-j SECMARK`` and ``-j CONNSECMARK``."""

from __future__ import annotations

from typing import Final

from translate.ir import ConnSecmark, Secmark, TableName
from translate.read.extensions.declaration import Context, Options, OptionSpec, TargetExtension
from translate.read.spelling.errors import OptionError

__all__ = ["CONNSECMARK", "SECMARK"]

_LONGEST: Final = 255  # SECMARK_SECCTX_MAX, less its NUL
_TABLES: Final = frozenset({TableName.MANGLE, TableName.SECURITY})


def _secmark(options: Options, _context: Context) -> Secmark:
    index, option = options.need("--selctx", "SECMARK")
    label = option.arguments[0]
    if not 0 < len(label.encode("utf-8", "surrogateescape")) <= _LONGEST:
        raise OptionError(f"the value of --selctx has 1 to {_LONGEST} bytes", option=index)
    return Secmark(label)


def _connsecmark(options: Options, _context: Context) -> ConnSecmark:
    if len(options) != 1:
        raise OptionError("CONNSECMARK needs either --save or --restore")
    return ConnSecmark(restore=options.has("--restore"))


SECMARK: Final = TargetExtension(
    name="SECMARK", options=(OptionSpec(name="--selctx"),), meaning=_secmark, tables=_TABLES
)
"""``-j SECMARK`` (``secmark_tg_check``)."""

CONNSECMARK: Final = TargetExtension(
    name="CONNSECMARK",
    options=(OptionSpec(name="--save", arguments=0), OptionSpec(name="--restore", arguments=0)),
    meaning=_connsecmark,
    tables=_TABLES,
)
"""``-j CONNSECMARK`` (``connsecmark_tg_check``)."""
