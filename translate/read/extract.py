"""Listings and dumps on a page with prose around them.

A page may show several nodes: :func:`read_pieces` returns a ruleset for each piece. Listings that
stand one after the other are one piece, as long as they do not contradict each other; a dump is a
piece by itself. Lines that are neither are prose, and end a listing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from translate.errors import Diagnostic, ParseError
from translate.ir import Family, Origin, Ruleset, TableName
from translate.read.forms import InputForm, family_of
from translate.read.listing import CHAIN_HEADER, COLUMNS, ROW, read_listing
from translate.read.save import read_fragment, read_rules

__all__ = ["read_pieces"]

_TABLE: Final = re.compile(r"\*(?:" + "|".join(TableName) + r")\s*")
_DUMPED: Final = (":", "-", "[", "#")
_COMMANDS: Final = ("-A ", "-P ", "-N ")
_PROMPT: Final = re.compile(r"\b(ip6?tables)(?:-legacy|-nft)?\b(?=.* (?:-[a-z]*[LS]|--list))(.*)")
_TABLE_OPTION: Final = re.compile(r" (?:-t ?|--table[ =])(" + "|".join(TableName) + r")\b")
_ELISION: Final = ("...", "…")

_Line = tuple[int, str]


@dataclass(slots=True)
class _Piece:
    """Lines that belong together, and what the command printed above them says."""

    form: InputForm
    table: TableName | None = None
    family: Family | None = None
    lines: list[_Line] = field(default_factory=list)
    chains: dict[str, list[str]] = field(default_factory=dict)


def read_pieces(
    text: str, *, name: str, family: Family | None = None, table: TableName | None = None
) -> tuple[Ruleset, ...]:
    """Return the rulesets on a page, in the order of their lines.

    ``table`` is that of listings above which no command names one. Raises ParseError when a piece
    cannot be read, and when there is none.
    """
    pieces = _Finder().find(text.split("\n"))
    if not pieces:
        message = "no listing and no dump on this page"
        hint = "looked for lines like *nat, Chain NAME (…), -A CHAIN … and rows of iptables -L"
        raise ParseError((Diagnostic(Origin(name), message, hint),))
    return tuple(_read(piece, name=name, family=family, table=table) for piece in pieces)


def _read(piece: _Piece, *, name: str, family: Family | None, table: TableName | None) -> Ruleset:
    text = "\n".join(line for _, line in piece.lines)
    known = family or piece.family or family_of(text, piece.form, name=name)
    where = piece.table or table
    match piece.form:
        case InputForm.LISTING:
            return read_listing(piece.lines, name=name, family=known, table=where, excerpt=True)
        case InputForm.RULES:
            lines, default = piece.lines, where or TableName.FILTER
            return read_rules(lines, name=name, family=known, table=default, whole=False)
        case _:
            return read_fragment(piece.lines, name=name, family=known, may_be_cut=True)


class _Finder:
    def __init__(self) -> None:
        self._pieces: list[_Piece] = []
        self._block: list[_Line] = []  # the listing of one chain, so far
        self._dump: _Piece | None = None
        self._rules: _Piece | None = None
        self._table: TableName | None = None
        self._family: Family | None = None

    def find(self, lines: list[str]) -> list[_Piece]:
        for number, line in enumerate(lines, 1):
            self._line(number, line)
        self._end_block()
        return self._pieces

    def _line(self, number: int, line: str) -> None:
        if self._in_dump(number, line) or self._in_rules(number, line):
            return
        if CHAIN_HEADER.fullmatch(line):
            self._end_block()
            self._block = [(number, line)]
        elif self._block and (COLUMNS.fullmatch(line) or ROW.fullmatch(line) or line.strip() in _ELISION):
            self._block.append((number, line))
        elif ROW.fullmatch(line):
            self._block = [(number, line)]
        else:
            self._end_block()
            prompt = _PROMPT.search(line)
            if prompt is not None:
                found = _TABLE_OPTION.search(prompt[2])
                self._table = TableName(found[1]) if found else TableName.FILTER
                self._family = Family.IP6 if prompt[1] == "ip6tables" else Family.IP
            elif line.strip():
                self._table = self._family = None

    def _in_dump(self, number: int, line: str) -> bool:
        """Take a line of a dump; a dump ends behind COMMIT at what no dump holds."""
        text = line.strip()
        if _TABLE.fullmatch(line) and not (self._dump is not None and self._again(text)):
            self._end_block()
            if self._dump is None:
                self._dump = _Piece(InputForm.SAVE)
                self._pieces.append(self._dump)
        elif _TABLE.fullmatch(line):
            self._dump = _Piece(InputForm.SAVE)
            self._pieces.append(self._dump)
        elif self._dump is None:
            return False
        elif text and text != "COMMIT" and not line.startswith(_DUMPED):
            self._dump = None
            return False
        if text:
            self._dump.lines.append((number, line))
        return True

    def _again(self, text: str) -> bool:
        assert self._dump is not None
        return any(line.strip() == text for _, line in self._dump.lines)

    def _in_rules(self, number: int, line: str) -> bool:
        """Take a line of ``iptables -S`` output, without a dump around it."""
        if not line.startswith(_COMMANDS):
            self._rules = None
            return False
        self._end_block()
        if self._rules is None:
            self._rules = _Piece(InputForm.RULES, self._table, self._family)
            self._pieces.append(self._rules)
        self._rules.lines.append((number, line))
        return True

    def _end_block(self) -> None:
        """Put the listing of a chain into the last piece, or into a new one if they contradict."""
        block, self._block = self._block, []
        if not block:
            return
        header = CHAIN_HEADER.fullmatch(block[0][1])
        name = header[1] if header is not None else f"?{block[0][0]}"
        content = [" ".join(line.split()) for _, line in block[1:]]
        last = self._pieces[-1] if self._pieces else None
        if (
            last is None
            or last.form is not InputForm.LISTING
            or last.chains.get(name, content) != content
            or (None not in (self._table, last.table) and self._table is not last.table)
            or (None not in (self._family, last.family) and self._family is not last.family)
        ):
            last = _Piece(InputForm.LISTING)
            self._pieces.append(last)
        last.table = last.table or self._table
        last.family = last.family or self._family
        if name not in last.chains:
            last.chains[name] = content
            last.lines += [(block[0][0], ""), *block]
        self._table = self._family = None
