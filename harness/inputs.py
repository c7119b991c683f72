"""Which rules a command reads: a file in one of several forms, or the pieces of a page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.files import STDIN_NAME, read_bytes
from translate.errors import Diagnostic, InputError, ParseError
from translate.ir import Family, Origin, Ruleset, TableName
from translate.read import InputForm, read_pieces, read_ruleset

__all__ = ["AS_FOUND", "InputOptions", "load_pieces", "load_rules", "read_some"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions:
    """How an input is to be read; None: as recognised.

    ``extract`` looks for rules on a page; ``piece`` (from 1) takes one of those found.
    """

    family: Family | None = None
    form: InputForm | None = None
    table: TableName | None = None
    extract: bool = False
    piece: int | None = None

    def words(self) -> tuple[str, ...]:
        """Return the words of a command line that say the same."""
        words: list[str] = []
        for option, value in (("--family", self.family), ("--input", self.form), ("--table", self.table)):
            if value is not None:
                words += [option, value]
        if self.extract:
            words.append("--extract")
        if self.piece is not None:
            words += ["--piece", str(self.piece)]
        return tuple(words)


AS_FOUND = InputOptions()
"""Everything is recognised."""


def load_rules(path: str, options: InputOptions = AS_FOUND) -> Ruleset:
    """Read rules (``-``: standard input) that are one ruleset; ParseError or InputError when that fails."""
    pieces = load_pieces(path, options)
    if len(pieces) > 1:
        places = ", ".join(f"{n}: from line {_line(one)}" for n, one in enumerate(pieces, 1))
        raise InputError(f"{path}: {len(pieces)} rulesets on this page ({places}); choose one with --piece")
    return pieces[0]


def load_pieces(path: str, options: InputOptions = AS_FOUND) -> tuple[Ruleset, ...]:
    """Read every ruleset of an input: one, unless it is a page with several."""
    if Path(path).is_dir():
        raise InputError(f"{path}: is a folder; give the file with the rules")
    name = STDIN_NAME if path == "-" else path
    data = read_bytes(path)
    family, table = options.family, options.table
    if not options.extract:
        if options.piece is not None:
            raise InputError("--piece is for pages; it needs --extract")
        return (read_some(data, name=name, options=options),)
    if options.form is not None:
        raise InputError("--extract finds out the form of each piece; --input cannot be given with it")
    pieces = read_pieces(data, name=name, family=family, table=table)
    if options.piece is None:
        return pieces
    if not 1 <= options.piece <= len(pieces):
        raise InputError(f"{path}: there is no piece {options.piece}; pieces are 1 to {len(pieces)}")
    return (pieces[options.piece - 1],)


def read_some(data: bytes, *, name: str, options: InputOptions = AS_FOUND) -> Ruleset:
    """Read one ruleset; ParseError also when there is no table in it.

    An iptables-save that prints nothing at all has most likely failed, or was not root.
    """
    ruleset = read_ruleset(data, name=name, family=options.family, form=options.form, table=options.table)
    if not ruleset.tables:
        hint = "a table without rules reads: *filter, a line for each chain, COMMIT"
        raise ParseError((Diagnostic(Origin(name), "no rules in this text", hint),))
    return ruleset


def _line(ruleset: Ruleset) -> int:
    return min(table.origin.line for table in ruleset.tables)
