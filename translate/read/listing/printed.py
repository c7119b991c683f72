"""The text of matches and targets in a listing, parsed back into their options.

``iptables -L`` prints each extension by its ``print`` function, ``iptables-save`` by its ``save`` function.
Each form of ``print`` is a pattern in :mod:`~translate.read.listing.printed_matches` or
:mod:`~translate.read.listing.printed_targets`, with the options that ``save`` would print. Text that matches
no pattern is an error.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from translate.dataclass import dataclass, field
from translate.ir import Family, Field, Hidden, Unknown
from translate.read.listing.printed_matches import MATCHES, Words, inverted
from translate.read.listing.printed_targets import TARGETS

__all__ = ["Printed", "PrintedError", "everywhere", "parse_printed"]

_OWNER: Final = re.compile(r"(! )?owner (UID|GID) match (\S+)(?= |$)")
_HASHLIMIT: Final = re.compile(
    r"limit: (?:up to|above) \S+ burst \S+"
    r"(?: (?:mode \S+|(?:htable-\w+|(?:src|dst)mask|rate-interval) \d+|rate-match))*(?= |$)"
)
_NO_TABLE: Final = Unknown("the listing hides the name of a table of -m hashlimit", Hidden.TESTS)
_QUOTA: Final = re.compile(r"quota: \d+ bytes(?= |$)")
_NO_SIGN: Final = Unknown("the listing hides whether -m quota is negated", Hidden.TESTS)
_COMMENT: Final = re.compile(r"/\* (.*?) \*/(?= |$)")
_CONNECTION_ADDRESSES: Final = frozenset(
    f"--ct{where}{side}" for where in ("orig", "repl") for side in ("src", "dst")
)
_TO: Final = re.compile(r"to:(\S+)(?= |$)")


class PrintedError(Exception):
    """Text that no known match or target prints, at ``offset`` in the tail."""

    def __init__(self, offset: int, text: str) -> None:
        self.offset = offset
        self.text = text
        super().__init__(text)


@dataclass(slots=True)
class Printed:
    """The tail of a row, after source and destination, as words of a rule.

    ``translated`` is the address and port after ``to:``, which may be a name or be masked. ``unknown`` has
    the tests of users and groups that are printed by name, and those of ``-m hashlimit``, whose table is not
    printed.
    """

    goto: bool = False
    matches: Words = field(default_factory=list)
    options: Words = field(default_factory=list)
    translated: str | None = None
    unknown: list[Unknown] = field(default_factory=list)


def everywhere(family: Family) -> str:
    """Return the address that listings call ``anywhere``."""
    return "0.0.0.0/0" if family is Family.IP else "::/0"


def parse_printed(text: str, target: str | None, family: Family = Family.IP) -> Printed:
    """Return the words for the tail of a row; raises PrintedError.

    ``target`` is the row's first column: options of targets are only read for this target.
    """
    row = Printed()
    at = 0
    while at < len(text):
        if text[at] == " ":
            at += 1
        elif text.startswith("[goto]", at):
            row.goto = True
            at += len("[goto]")
        else:
            at = _part(row, text, at, target)
    row.matches = [
        everywhere(family) if word == "anywhere" and option in _CONNECTION_ADDRESSES else word
        for option, word in pairwise(["", *row.matches])
    ]
    return row


def _part(row: Printed, text: str, at: int, target: str | None) -> int:
    match = _COMMENT.match(text, at)
    if match is not None:
        row.matches += ("-m", "comment", "--comment", match[1])
        return match.end()
    if target in ("DNAT", "SNAT") and row.translated is None:
        match = _TO.match(text, at)
        if match is not None:
            row.translated = match[1]
            return match.end()
    match = _OWNER.match(text, at)
    if match is not None:
        _owner(row, match)
        return match.end()
    for pattern, hidden in ((_HASHLIMIT, _NO_TABLE), (_QUOTA, _NO_SIGN)):
        match = pattern.match(text, at)
        if match is not None:
            row.unknown.append(hidden)
            return match.end()
    for pattern, words in MATCHES:
        match = pattern.match(text, at)
        if match is not None:
            row.matches += words(match)
            return match.end()
    for pattern, owner, words in TARGETS:
        match = pattern.match(text, at)
        if match is not None and target is not None and owner in ("", target):
            row.options += words(match)
            return match.end()
    raise PrintedError(at, text[at:].split(" ", 1)[0])


def _owner(row: Printed, match: re.Match[str]) -> None:
    """Read a user or group; without ``-n`` it is a name that only the node knows (``owner_mt_print``)."""
    kind, value = match[2], match[3]
    if value[0].isdigit():
        row.matches += ["-m", "owner", *inverted(match[1], [f"--{kind.lower()}-owner", value])]
        return
    field = Field.SOCKET_UID if kind == "UID" else Field.SOCKET_GID
    owner = "user" if kind == "UID" else "group"
    row.unknown.append(Unknown(f'the {owner} "{value}" is printed by name', Hidden.TESTS, (field,)))
