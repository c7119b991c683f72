"""``-j LOG`` and ``-j NFLOG`` as nft's ``log``: both use the loggers of ``nf_log_packet``.

A string of nft has no escapes: it ends at the next quote, and a backslash is a plain character. In the
prefix of a log nft also expands variables (``$name``), even between quotes. So a dollar sign and the
letters after it are put into a variable, whose value nft does not expand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from translate.ir import Log, LogDetail, NfLog

__all__ = ["definitions", "log_statement"]

_LEVELS: Final = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")
_DETAILS: Final = (
    (LogDetail.IP_OPTIONS, "ip options"),
    (LogDetail.UID, "skuid"),
    (LogDetail.MACDECODE, "ether"),
)
_TCP: Final = ((LogDetail.TCP_SEQUENCE, "sequence"), (LogDetail.TCP_OPTIONS, "options"))
_PREFIX: Final = 'log prefix "'
_VARIABLE: Final = re.compile(r"\$([A-Za-z0-9_]*)")
_DEFINED: Final = re.compile(r"\$(dollar_([A-Za-z0-9_]*))")


def log_statement(action: Log | NfLog) -> str:
    """Return the ``log`` statement. Prefixes that nft cannot quote were refused before."""
    words = ["log"]
    if action.prefix:
        words[0] = _PREFIX + _VARIABLE.sub(r"$dollar_\1", action.prefix) + '"'
    if isinstance(action, NfLog):
        words.append(f"group {action.group}")
        if action.size is not None:
            words.append(f"snaplen {action.size}")
        if action.threshold:
            words.append(f"queue-threshold {action.threshold}")
        return " ".join(words)
    words.append(f"level {_LEVELS[action.level]}")
    tcp = [name for detail, name in _TCP if detail in action.details]
    if tcp:
        words.append(f"flags tcp {','.join(tcp)}")
    words += [f"flags {name}" for detail, name in _DETAILS if detail in action.details]
    return " ".join(words)


def definitions(statements: Iterable[str]) -> Iterator[str]:
    """Yield the lines that define the variables of these statements, and must precede them."""
    logs = [text for text in statements if text.startswith(_PREFIX)]
    for name, letters in dict.fromkeys(definition for text in logs for definition in _DEFINED.findall(text)):
        # A handle of libnftables keeps the variables of earlier texts, and refuses to define one of them
        # again.
        yield f'redefine {name} = "${letters}"'
