"""``-j LOG`` and ``-j NFLOG``: a message about the packet, which continues unchanged."""

from __future__ import annotations

from typing import Final

from translate.ir import Log, LogDetail, NfLog
from translate.read.extensions.declaration import (
    MARK_BITS,
    Context,
    Options,
    OptionSpec,
    TargetExtension,
    parse_mark,
)
from translate.read.spelling.errors import OptionError
from translate.read.spelling.numbers import unsigned

__all__ = ["LOG", "NFLOG"]

_LEVELS: Final = {
    "emerg": 0,
    "panic": 0,
    "alert": 1,
    "crit": 2,
    "error": 3,
    "warning": 4,
    "notice": 5,
    "info": 6,
    "debug": 7,
}
_DEFAULT_LEVEL: Final = 4
_DETAILS: Final = {f"--log-{detail.value}": detail for detail in LogDetail}
_LONGEST_LOG: Final = 29  # char prefix[30] of struct xt_log_info, less its NUL
_LONGEST_NFLOG: Final = 63  # char prefix[64] of struct xt_nflog_info, less its NUL
_MOST: Final = 65535


def _prefix(options: Options, name: str, longest: int) -> str:
    """Return the prefix, cut to the kernel's maximum length (``xtopt_parse_string``)."""
    occurrence = options.find(name)
    if occurrence is None:
        return ""
    index, option = occurrence
    text = option.arguments[0]
    if "\n" in text:
        raise OptionError("a prefix is one line", option=index)
    if not text:
        raise OptionError("a prefix needs at least one character", option=index)
    return text.encode("utf-8", "surrogateescape")[:longest].decode("utf-8", "surrogateescape")


def _number(options: Options, name: str, *, most: int = _MOST) -> int | None:
    occurrence = options.find(name)
    if occurrence is None:
        return None
    index, option = occurrence
    value = parse_mark(option.arguments[0], option=index)
    if value > most:
        raise OptionError(f'"{name}" is at most {most}', option=index)
    return value


def _level(options: Options) -> int:
    occurrence = options.find("--log-level")
    if occurrence is None:
        return _DEFAULT_LEVEL
    index, option = occurrence
    text = option.arguments[0]
    level = unsigned(text, 7)
    if level is None:
        level = _LEVELS.get(text)
    if level is None:
        raise OptionError(f'unknown log level "{text}"', option=index, hint="0 to 7, or a name")
    return level


def _log(options: Options, _context: Context) -> Log:
    details = tuple(detail for name, detail in _DETAILS.items() if options.has(name))
    return Log(_prefix(options, "--log-prefix", _LONGEST_LOG), _level(options), details)


def _nflog(options: Options, _context: Context) -> NfLog:
    if _number(options, "--nflog-range", most=MARK_BITS) is not None and options.has("--nflog-size"):
        raise OptionError("NFLOG takes --nflog-size or --nflog-range, not both; --nflog-range has no effect")
    return NfLog(
        prefix=_prefix(options, "--nflog-prefix", _LONGEST_NFLOG),
        group=_number(options, "--nflog-group") or 0,
        size=_number(options, "--nflog-size", most=MARK_BITS),
        threshold=_number(options, "--nflog-threshold") or None,
    )


LOG: Final = TargetExtension(
    name="LOG",
    options=(
        OptionSpec(name="--log-prefix"),
        OptionSpec(name="--log-level"),
        *(OptionSpec(name=name, arguments=0) for name in _DETAILS),
    ),
    meaning=_log,
)
"""``-j LOG`` (``xt_LOG``)."""

NFLOG: Final = TargetExtension(
    name="NFLOG",
    options=(
        OptionSpec(name="--nflog-prefix"),
        OptionSpec(name="--nflog-group"),
        OptionSpec(name="--nflog-range"),
        OptionSpec(name="--nflog-size"),
        OptionSpec(name="--nflog-threshold"),
    ),
    meaning=_nflog,
)
"""``-j NFLOG`` (``xt_NFLOG``)."""
