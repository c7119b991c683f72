"""Listings and dumps on a page with prose around them.

A page may show several nodes: :func:`read_pieces` returns a ruleset for each piece. Adjacent listings are one
piece, as long as they do not contradict each other; a dump is a separate piece. All other lines are prose,
and end a listing.

The table of a listing is named by the command above it, or by a line that introduces it ("Table nat:", "And
the corresponding nat table:"). Text after prose about another table is another piece. A line or a piece that
cannot be read counts as unknown rules, and is reported among the unknowns.
"""

from __future__ import annotations

import re
from typing import Final

from translate.dataclass import dataclass, field, replace
from translate.errors import Diagnostic, ParseError
from translate.ir import TABLE_HOOKS, Family, Origin, Ruleset, TableName
from translate.read.extensions import TARGETS
from translate.read.forms import InputForm, family_of
from translate.read.listing import CHAIN_HEADER, COLUMNS, ROW, read_listing
from translate.read.save import read_fragment, read_rules

__all__ = ["read_pieces"]

_TABLE: Final = re.compile(r"\*(?:" + "|".join(TableName) + r")\s*")
_DUMPED: Final = (":", "-", "[", "#")
_COMMANDS: Final = ("-A ", "-P ", "-N ")
_PROMPT: Final = re.compile(r"\b(ip6?tables)(?:-legacy|-nft)?\b(?=.* (?:-[a-z]*[LS]|--list))(.*)")
_TABLE_OPTION: Final = re.compile(r" (?:-t ?|--table[ =])([a-z]+)\b")
_TABLES: Final = "|".join((*TableName, "security", "broute"))
_MENTION: Final = re.compile(
    rf"\btables?\W{{1,3}}({_TABLES})\b|\b({_TABLES})\W{{1,3}}tables?\b", re.IGNORECASE
)
_MARKUP: Final = re.compile(r"\s*(?:<[^>]*>.*|```.*|~~~.*|[-=*_]{3,}\s*)")
_RULE: Final = re.compile(r"-([APN]) (\S+)(?:.* -j (\S+))?")
_ELISION: Final = ("...", "…")

_Line = tuple[int, str]


@dataclass(slots=True)
class _Piece:
    """Lines of one ruleset, with the table and family that the command above them names."""

    form: InputForm
    table: str | None = None
    stated: int | None = None
    """The number of the line of prose that names the table, if there is one."""
    family: Family | None = None
    lines: list[_Line] = field(default_factory=list)
    chains: dict[str, list[str]] = field(default_factory=dict)

    @property
    def numbers(self) -> tuple[int, int]:
        """The first and the last line."""
        return self.lines[0][0], self.lines[-1][0]


def read_pieces(
    text: str, *, name: str, family: Family | None = None, table: TableName | None = None
) -> tuple[Ruleset, ...]:
    """Return the rulesets on a page, in the order of their lines.

    ``table`` is the table of listings without a command that names one. Raises ParseError if a piece cannot
    be read or there is none.
    """
    pieces = _Finder().find(text.split("\n"))
    if not pieces:
        message = "no listing and no dump on this page"
        hint = "looked for lines like *nat, Chain NAME (…), -A CHAIN … and rows of iptables -L"
        raise ParseError((Diagnostic(Origin(name), message, hint),))
    rulesets: list[Ruleset] = []
    refused: list[str] = []
    faults: list[Diagnostic] = []
    for piece in pieces:
        try:
            rulesets.append(_read(piece, name=name, family=family, table=table))
        except ParseError as error:
            faults += error.diagnostics
            first, last = piece.numbers
            why = error.diagnostics[0]
            refused.append(f"lines {first} to {last} are not read: line {why.origin.line}: {why.message}")
    if not rulesets:
        raise ParseError(tuple(faults))
    return (replace(rulesets[0], unknown=(*rulesets[0].unknown, *refused)), *rulesets[1:])


def _read(piece: _Piece, *, name: str, family: Family | None, table: TableName | None) -> Ruleset:
    text = "\n".join(line for _, line in piece.lines)
    piece_family = family or piece.family or family_of(text, piece.form, name=name)
    first = Origin(name, piece.numbers[0])
    if piece.table is not None and piece.table not in set(TableName):
        raise ParseError((Diagnostic(first, f"table {piece.table} is not read", None),))
    where = table if piece.table is None else TableName(piece.table)
    match piece.form:
        case InputForm.LISTING:
            read = read_listing(piece.lines, name=name, family=piece_family, table=where, excerpt=True)
        case InputForm.RULES:
            default, notes = (where, []) if where is not None else _table_of(piece.lines, first)
            read = read_rules(
                piece.lines, name=name, family=piece_family, table=default, whole=False, excerpt=True
            )
            read = replace(read, unknown=(*notes, *read.unknown))
        case _:
            return read_fragment(piece.lines, name=name, family=piece_family, may_be_cut=True, excerpt=True)
    if piece.stated is not None:
        read = replace(read, unknown=(*read.unknown, f"line {piece.stated} says that this is table {where}"))
    return read


def _table_of(lines: list[_Line], first: Origin) -> tuple[TableName, list[str]]:
    """Return the table that can hold rules of ``iptables -S``, and remarks about it. Raises ParseError."""
    possible = set(TableName)
    built_in = {hook.value for hooks in TABLE_HOOKS.values() for hook in hooks}
    for _, line in lines:
        match = _RULE.match(line)
        if match is None:
            continue
        if match[2] in built_in:
            possible &= {t for t, hooks in TABLE_HOOKS.items() if match[2] in {hook.value for hook in hooks}}
        extension = TARGETS.get(match[3] or "")
        if extension is not None and extension.tables is not None:
            possible &= extension.tables
    if len(possible) == 1:
        return possible.pop(), []
    if TableName.FILTER in possible:
        return TableName.FILTER, ["the table is not shown; filter is assumed, the default of iptables -S"]
    message = "these rules do not show their table" if possible else "no table can hold all these rules"
    raise ParseError((Diagnostic(first, message, "name it with --table" if possible else None),))


def _leads(line: str) -> bool:
    """Return True for a line that introduces the text below it: a heading, a short line, or a final colon."""
    text = line.strip()
    return text.startswith(("#", "<summary>")) or text.rstrip("*_`").endswith(":") or len(text.split()) < 5


def _names_table(line: str) -> bool:
    """Return True for a line that names the table of the text below it; not for a remark of iptables-save."""
    return bool(_PROMPT.search(line) or _MENTION.search(line)) and not line.endswith("use 'nft' tool.")


class _Finder:
    def __init__(self) -> None:
        self._pieces: list[_Piece] = []
        self._block: list[_Line] = []  # the lines of one chain's listing so far
        self._dump: _Piece | None = None
        self._committed = False  # the last line of the dump, apart from comments, is COMMIT
        self._rules: _Piece | None = None
        self._table: str | None = None
        self._stated: int | None = None
        self._family: Family | None = None
        self._parted = False  # prose has named another table than that of the last piece

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
            self._prose(number, line)

    def _prose(self, number: int, line: str) -> None:
        """Read a line of prose, which may name the table of the text below it."""
        prompt = _PROMPT.search(line)
        tables = {(mention[1] or mention[2]).lower() for mention in _MENTION.finditer(line)}
        if prompt is not None:
            option = _TABLE_OPTION.search(prompt[2])
            self._table, self._stated = option[1] if option else TableName.FILTER.value, None
            self._family = Family.IP6 if prompt[1] == "ip6tables" else Family.IP
        elif len(tables) == 1 and _leads(line):
            (self._table,) = tables
            self._stated = number
        elif line.strip() and (tables or not _MARKUP.fullmatch(line)):
            self._table = self._stated = self._family = None
            last = self._pieces[-1].table if self._pieces else None
            self._parted = self._parted or bool(tables - {last})

    def _in_dump(self, number: int, line: str) -> bool:
        """Read a line of a dump. A dump ends at the first line after COMMIT that cannot be part of a dump.

        Between tables these are rules, and comments that name the table of the text below them, such as a
        heading in Markdown.
        """
        text = line.strip()
        between = self._committed and text and not _TABLE.fullmatch(text)
        if self._dump is not None and between and (text[0] != "#" or _names_table(text)):
            self._dump = None
        if _TABLE.fullmatch(text) and not (self._dump is not None and self._again(text)):
            self._end_block()
            if self._dump is None:
                self._dump = _Piece(InputForm.SAVE)
                self._pieces.append(self._dump)
        elif _TABLE.fullmatch(text):
            self._dump = _Piece(InputForm.SAVE)
            self._pieces.append(self._dump)
        elif self._dump is None:
            return False
        elif text and text != "COMMIT" and not text.startswith(_DUMPED):
            self._dump = None
            return False
        if text:
            self._dump.lines.append((number, line.lstrip()))
            self._committed = text == "COMMIT" or (self._committed and text[0] == "#")
        return True

    def _again(self, text: str) -> bool:
        assert self._dump is not None
        return any(line.strip() == text for _, line in self._dump.lines)

    def _in_rules(self, number: int, line: str) -> bool:
        """Read a line of ``iptables -S`` output outside of a dump."""
        text = line.strip()
        if not text.startswith(_COMMANDS):
            self._rules = None
            return False
        self._end_block()
        if self._rules is None:
            self._rules = _Piece(InputForm.RULES, self._table, self._stated, self._family)
            self._pieces.append(self._rules)
        self._rules.lines.append((number, text))
        return True

    def _end_block(self) -> None:
        """Add the listing of a chain to the last piece, or to a new piece if it contradicts the last one."""
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
            or (self._table is not None and self._table != last.table)
            or (self._table is None and self._parted)
            or (None not in (self._family, last.family) and self._family is not last.family)
        ):
            last = _Piece(InputForm.LISTING, self._table, self._stated)
            self._pieces.append(last)
        self._parted = False
        last.family = last.family or self._family
        if name not in last.chains:
            last.chains[name] = content
            last.lines += [(block[0][0], ""), *block]
