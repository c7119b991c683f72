"""Logging actions as text: ``log "prefix" level 4``, ``nflog "prefix" group 1``."""

from __future__ import annotations

from translate.ir import Log, LogDetail, NfLog
from translate.irtext.lexer import Cursor, quoted

__all__ = ["format_nflog", "take_log", "take_nflog"]


def format_nflog(action: NfLog) -> str:
    """Return the text of NFLOG."""
    text = f"nflog {quoted(action.prefix)} group {action.group}"
    text += "" if action.size is None else f" size {action.size}"
    return text if action.threshold is None else f"{text} threshold {action.threshold}"


def take_log(cursor: Cursor) -> Log:
    """Read LOG, from behind its first word."""
    prefix = cursor.next("a prefix").text
    cursor.expect("level")
    level = cursor.number("a level", most=7)
    details = []
    while not cursor.is_done and not cursor.peek(","):
        details.append(cursor.member(LogDetail))
    return Log(prefix, level, tuple(details))


def take_nflog(cursor: Cursor) -> NfLog:
    """Read NFLOG, from behind its first word."""
    prefix = cursor.next("a prefix").text
    cursor.expect("group")
    return NfLog(
        prefix=prefix,
        group=cursor.number("a group"),
        size=cursor.number("a number of bytes") if cursor.take("size") else None,
        threshold=cursor.number("a number of packets") if cursor.take("threshold") else None,
    )
