"""Comments in nft text: the rule's own comment first, then its line number.

After a migration the file of rules may be gone. The rule's own comment then still identifies it: in
kube-proxy's rules it is the name of a service.
"""

from __future__ import annotations

import re
from typing import Final

from translate.ir import Origin

__all__ = ["MAX_COMMENT", "comment", "line_comment", "own_comment", "place_comment"]

MAX_COMMENT: Final = 127
"""Longest comment in bytes: ``NFTNL_UDATA_COMMENT_MAXLEN`` with the NUL after it."""

_OPTION: Final = "--comment "
_WORD: Final = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"|(\S+)')
_ESCAPED: Final = re.compile(r"\\(.)")
_LISTED: Final = re.compile(r"/\* (.*?) \*/")
_QUOTES: Final = '"\\'
_PLAIN: Final = re.compile(r"[ !#-\[\]-~]*")
"""Printable ASCII without quotes and backslashes."""


def place_comment(origin: Origin) -> str:
    """Return the quoted comment of a rule or element from ``origin``; empty without a line.

    If the origin stands for several rules, the comment says so, and leaves out the rules' own comments.
    """
    if not origin.line:
        return ""
    if origin.several:
        return comment(f"rules like line {origin.line}")
    return line_comment(origin.line, origin.text)


def line_comment(line: int, text: str) -> str:
    """Return the quoted comment of a rule or element from one line of rules."""
    own = own_comment(text)
    return comment(own, f", line {line}") if own else f'"line {line}"'


def own_comment(text: str) -> str:
    """Return the comment in a line of iptables-save or ``iptables -L``; several are joined.

    ``xtables_save_string`` quotes a comment that is not a plain word, and escapes quotes and backslashes.
    ``iptables -L`` prints it between ``/*`` and ``*/`` (``comment_print``).
    """
    at = text.find(_OPTION)
    if at < 0:
        return "; ".join(_LISTED.findall(text)) if "/*" in text else ""
    begin = at + len(_OPTION)
    if text.startswith('"', begin):
        end = text.find('"', begin + 1)
        if end > 0 and text.find(_OPTION, end) < 0 and "\\" not in (only := text[begin + 1 : end]):
            return only  # most comments
    words = []
    while at >= 0:
        match = _WORD.match(text, at + len(_OPTION))
        if match is None:
            break
        quoted, plain = match.groups()
        if quoted is not None and "\\" in quoted:
            quoted = _ESCAPED.sub(r"\1", quoted)
        words.append(plain if quoted is None else quoted)
        at = text.find(_OPTION, match.end())
    return "; ".join(words)


def comment(text: str, behind: str = "") -> str:
    """Return ``text`` and then ``behind`` as a quoted nft comment; ``text`` is cut to fit into 127 bytes.

    nft strings have no escapes: quotes and unprintable characters become apostrophes.
    """
    room = MAX_COMMENT - len(behind)
    if len(text) <= room and _PLAIN.fullmatch(text):
        return f'"{text}{behind}"'
    clean = "".join(char if char.isprintable() and char not in _QUOTES else "'" for char in text)
    encoded = clean.encode()
    if len(encoded) > room:
        clean = encoded[: room - len("…".encode())].decode(errors="ignore") + "…"
    return f'"{clean}{behind}"'
