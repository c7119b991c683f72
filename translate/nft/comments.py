"""Comments in nft text: a rule's own comment first, and then the line that it stands in.

After a migration the file of rules may be gone. What helps then is what the rule said of itself, which in
kube-proxy's rules is the name of a service.
"""

from __future__ import annotations

import re
from typing import Final

from translate.ir import Origin

__all__ = ["MAX_COMMENT", "comment", "line_comment", "own_comment", "place_comment"]

MAX_COMMENT: Final = 127
"""Longest comment in bytes: ``NFTNL_UDATA_COMMENT_MAXLEN`` with the NUL behind it."""

_OPTION: Final = "--comment "
_WORD: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)')
_ESCAPED: Final = re.compile(r"\\(.)")
_LISTED: Final = re.compile(r"/\* (.*?) \*/")
_QUOTES: Final = '"\\'
_PLAIN: Final = re.compile(r"[ !#-\[\]-~]*")
"""ASCII that can be printed, but quotes and backslashes."""


def place_comment(origin: Origin) -> str:
    """Return the quoted comment of a rule or element that comes from ``origin``; empty without a line.

    What stands for several rules says so, and says nothing that is true of one of them alone.
    """
    if not origin.line:
        return ""
    if origin.several:
        return comment(f"rules like line {origin.line}")
    return line_comment(origin.line, origin.text)


def line_comment(line: int, text: str) -> str:
    """Return the quoted comment of what comes from one line of rules."""
    own = own_comment(text)
    return comment(own, f", line {line}") if own else f'"line {line}"'


def own_comment(text: str) -> str:
    """Return the comment in a line of iptables-save or ``iptables -L``; several are joined.

    ``xtables_save_string`` quotes a comment that is no plain word, and escapes quotes and backslashes.
    ``iptables -L`` prints it between ``/*`` and ``*/`` (``comment_print``).
    """
    at = text.find(_OPTION)
    if at < 0:
        return "; ".join(_LISTED.findall(text)) if "/*" in text else ""
    words = []
    while at >= 0:
        found = _WORD.match(text, at + len(_OPTION))
        if found is None:
            break
        quoted, plain = found.groups()
        words.append(plain if quoted is None else _ESCAPED.sub(r"\1", quoted))
        at = text.find(_OPTION, found.end())
    return "; ".join(words)


def comment(text: str, behind: str = "") -> str:
    """Return ``text`` and ``behind`` as a quoted nft comment of 127 bytes at most; ``text`` is cut for that.

    nft strings have no escapes, so that quotes and what cannot be printed become apostrophes.
    """
    room = MAX_COMMENT - len(behind)
    if len(text) <= room and _PLAIN.fullmatch(text):
        return f'"{text}{behind}"'
    clean = "".join(char if char.isprintable() and char not in _QUOTES else "'" for char in text)
    encoded = clean.encode()
    if len(encoded) > room:
        clean = encoded[: room - len("…".encode())].decode(errors="ignore") + "…"
    return f'"{clean}{behind}"'
