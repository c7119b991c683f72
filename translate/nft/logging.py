"""``-j LOG`` and ``-j NFLOG`` as nft's ``log``: both write by the loggers of ``nf_log_packet``."""

from __future__ import annotations

from typing import Final

from translate.ir import Log, LogDetail, NfLog
from translate.nft.refusal import CannotSay

__all__ = ["log_statement"]

_LEVELS: Final = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")
_DETAILS: Final = (
    (LogDetail.IP_OPTIONS, "ip options"),
    (LogDetail.UID, "skuid"),
    (LogDetail.MACDECODE, "ether"),
)
_TCP: Final = ((LogDetail.TCP_SEQUENCE, "sequence"), (LogDetail.TCP_OPTIONS, "options"))


def log_statement(action: Log | NfLog) -> str:
    """Return the statement. Raises CannotSay for a prefix that nft cannot quote."""
    words = ["log"]
    if action.prefix:
        if '"' in action.prefix or "\\" in action.prefix or not action.prefix.isprintable():
            raise CannotSay("log-prefix", f"nft cannot quote the prefix {action.prefix!r}")
        words.append(f'prefix "{action.prefix}"')
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
