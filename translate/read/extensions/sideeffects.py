"""``-j AUDIT``, ``CHECKSUM``, ``CLASSIFY`` and ``TRACE``.

None of them changes a packet for later rules, for its receiver or for its connection.
"""

from __future__ import annotations

import re
from typing import Final

from translate.ir import (
    Audit,
    Classify,
    FillChecksum,
    Hook,
    TableName,
    Trace,
)
from translate.read.extensions.declaration import Context, Options, OptionSpec, TargetExtension
from translate.read.spelling.errors import OptionError

__all__ = ["SIDE_EFFECTS"]

_AUDITED: Final = ("accept", "drop", "reject")
_CLASS: Final = re.compile(r"\s*(?:0[xX])?([0-9a-fA-F]{1,8}):\s*(?:0[xX])?([0-9a-fA-F]{1,8})")
_HALF: Final = 0xFFFF


def _audit(options: Options, _context: Context) -> Audit:
    index, option = options.need("--type", "AUDIT")
    if option.arguments[0].lower() not in _AUDITED:
        raise OptionError(f'unknown type "{option.arguments[0]}"', option=index, hint=", ".join(_AUDITED))
    return Audit()


def _classify(options: Options, _context: Context) -> Classify:
    """Read the class as ``CLASSIFY_string_to_priority`` does: two hexadecimal numbers of 16 bits.

    Larger numbers are refused, because the kernel joins them differently from how it prints them.
    """
    index, option = options.need("--set-class", "CLASSIFY")
    match = _CLASS.match(option.arguments[0])
    if match is None:
        raise OptionError(
            f'"{option.arguments[0]}" is not MAJOR:MINOR', option=index, hint="for example 1:20"
        )
    major, minor = int(match[1], 16), int(match[2], 16)
    if max(major, minor) > _HALF:
        raise OptionError("both numbers of a class are at most ffff", option=index)
    return Classify(major << 16 | minor)


def _checksum(options: Options, _context: Context) -> FillChecksum:
    options.need("--checksum-fill", "CHECKSUM")
    return FillChecksum()


SIDE_EFFECTS: Final = (
    TargetExtension(name="AUDIT", options=(OptionSpec(name="--type"),), meaning=_audit),
    TargetExtension(
        name="CHECKSUM",
        options=(OptionSpec(name="--checksum-fill", arguments=0),),
        meaning=_checksum,
        tables=frozenset({TableName.MANGLE}),
    ),
    TargetExtension(
        name="CLASSIFY",
        options=(OptionSpec(name="--set-class"),),
        meaning=_classify,
        hooks=frozenset({Hook.FORWARD, Hook.OUTPUT, Hook.POSTROUTING}),
    ),
    TargetExtension(
        name="TRACE",
        options=(),
        meaning=lambda _options, _context: Trace(),
        tables=frozenset({TableName.RAW}),
    ),
)
"""The targets, each with the tables and hooks in which the kernel allows it (``xt_AUDIT`` …)."""
