"""Which rules a command reads: a file in one of several forms, or the pieces of a page.

Rules that ask ipsets need their members: a file that is named, or else one called ``ipset-save``
beside the rules, where a snapshot of a node has it. A snapshot itself is taken, too: the rules of one
family in force there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.files import STDIN_NAME, read_bytes
from harness.snapshot.archive import is_snapshot
from translate.errors import Diagnostic, InputError, ParseError
from translate.ir import Family, Origin, Ruleset, TableName
from translate.read import InputForm, SetForm, read_ipsets, read_pieces, read_ruleset, with_sets

if TYPE_CHECKING:
    from harness.snapshot import Stack

__all__ = [
    "AS_FOUND",
    "IPSETS_FILE",
    "InputOptions",
    "give_ipsets",
    "load_pieces",
    "load_rules",
    "read_some",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions:
    """How an input is to be read; None: as recognised.

    ``extract`` looks for rules on a page; ``piece`` (from 1) takes one of those found. ``ipsets`` is the
    file with the ipsets, ``ipset_form`` its form. ``stack`` says whose rules of a snapshot are meant.
    """

    family: Family | None = None
    form: InputForm | None = None
    table: TableName | None = None
    extract: bool = False
    piece: int | None = None
    ipsets: str | None = None
    ipset_form: SetForm | None = None
    stack: Stack | None = None

    def words(self) -> tuple[str, ...]:
        """Return the words of a command line that say the same."""
        words: list[str] = []
        named = (
            ("--family", self.family),
            ("--input", self.form),
            ("--table", self.table),
            ("--ipsets", self.ipsets),
            ("--ipset-form", self.ipset_form),
            ("--rules-of", self.stack),
        )
        for option, value in named:
            if value is not None:
                words += [option, value]
        if self.extract:
            words.append("--extract")
        if self.piece is not None:
            words += ["--piece", str(self.piece)]
        return tuple(words)


AS_FOUND = InputOptions()
"""Everything is recognised."""

IPSETS_FILE: Final = "ipset-save"
"""The file beside the rules that holds the ipsets when none is named."""


def load_rules(path: str, options: InputOptions = AS_FOUND) -> Ruleset:
    """Read rules (``-``: standard input) that are one ruleset; ParseError or InputError when that fails."""
    pieces = load_pieces(path, options)
    if len(pieces) > 1:
        places = ", ".join(f"{n}: from line {_line(one)}" for n, one in enumerate(pieces, 1))
        raise InputError(f"{path}: {len(pieces)} rulesets on this page ({places}); choose one with --piece")
    return pieces[0]


def load_pieces(path: str, options: InputOptions = AS_FOUND) -> tuple[Ruleset, ...]:
    """Read every ruleset of an input: one, unless it is a page with several."""
    if is_snapshot(path):
        return (_of_snapshot(path, options),)
    if options.stack is not None:
        raise InputError(f"{path}: --rules-of is for snapshots; this is no folder and no .tar.gz")
    if path == "-" and options.ipsets == "-":
        raise InputError("only one of rules and ipsets can be standard input")
    name = STDIN_NAME if path == "-" else path
    data = read_bytes(path)
    family, table = options.family, options.table
    if not options.extract:
        if options.piece is not None:
            raise InputError("--piece is for pages; it needs --extract")
        return (give_ipsets(read_some(data, name=name, options=options), path, options),)
    if options.form is not None:
        raise InputError("--extract finds out the form of each piece; --input cannot be given with it")
    pieces = read_pieces(data, name=name, family=family, table=table)
    pieces = tuple(give_ipsets(one, path, options) for one in pieces)
    if options.piece is None:
        return pieces
    if not 1 <= options.piece <= len(pieces):
        raise InputError(f"{path}: there is no piece {options.piece}; pieces are 1 to {len(pieces)}")
    return (pieces[options.piece - 1],)


def _of_snapshot(path: str, options: InputOptions) -> Ruleset:
    from harness.snapshot import load_snapshot

    if options.extract or (options.form, options.table, options.piece) != (None, None, None):
        raise InputError(
            f"{path}: --input, --table, --extract and --piece are for files of rules, not snapshots"
        )
    ruleset = load_snapshot(path).ruleset(options.family or Family.IP, options.stack)
    return ruleset if options.ipsets is None else give_ipsets(ruleset, path, options)


def read_some(data: bytes, *, name: str, options: InputOptions = AS_FOUND) -> Ruleset:
    """Read one ruleset; ParseError also when there is no table in it.

    An iptables-save that prints nothing at all has most likely failed, or was not root.
    """
    ruleset = read_ruleset(data, name=name, family=options.family, form=options.form, table=options.table)
    if ruleset.is_empty:
        hint = "a table without rules reads: *filter, a line for each chain, COMMIT"
        raise ParseError((Diagnostic(Origin(name), "no rules in this text", hint),))
    return ruleset


def give_ipsets(ruleset: Ruleset, rules: Path | str, options: InputOptions = AS_FOUND) -> Ruleset:
    """Return the ruleset with the ipsets that it asks; as it is, where no file has them.

    ``rules`` is where the rules were read. Raises ParseError, and InputError for a named file that
    cannot be read.
    """
    path = options.ipsets
    if path is None and str(rules) != "-" and any(ruleset.set_tests()):
        beside = Path(rules).with_name(IPSETS_FILE)
        path = str(beside) if beside.is_file() else None
    if path is None:
        return ruleset
    name = STDIN_NAME if path == "-" else path
    return with_sets(ruleset, read_ipsets(read_bytes(path), name=name, form=options.ipset_form))


def _line(ruleset: Ruleset) -> int:
    return min(table.origin.line for table in ruleset.tables)
