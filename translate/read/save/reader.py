"""``iptables-save`` text, line by line.

The language is that of ``iptables-restore``: comments, ``*table``, ``:CHAIN POLICY [p:b]``, rules with or
without counters, ``COMMIT``. Commands that build a ruleset are always read
(:mod:`translate.read.save.commands`). Commands that change an existing ruleset are read only in a fragment
for ``iptables-restore --noflush``; the rules that it does not show are unknown. After a wrong line reading
continues, so that one run reports many faults.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from translate.dataclass import replace
from translate.ir import Counters, Family, Origin, Ruleset, Table, TableName
from translate.read.rule.base import RuleError
from translate.read.rule.reader import RuleReader
from translate.read.save.commands import APPEND, COUNTERS, Commands
from translate.read.spelling.scanner import QuoteError, scan, split
from translate.read.tables.building import TableBuilder
from translate.read.tables.checks import check_table
from translate.read.tables.faults import Faults
from translate.read.tables.hidden import add_hidden, hidden_rule

__all__ = ["LONGEST_LINE", "read_fragment", "read_lines", "read_rules", "read_save"]

LONGEST_LINE: Final = 10_238
"""The longest line in characters that ``iptables-restore`` can read (``char buffer[10240]``)."""

_DECLARATION: Final = re.compile(r':([^ \t"]+) ([^ \t"]+) \[([0-9]{1,20}):([0-9]{1,20})\]')

_LEGACY: Final = re.compile(r"# Warning: (ip6?tables)-legacy tables present")
_FOREIGN: Final = re.compile(r"# Table `([^']+)' is incompatible, use 'nft' tool\.")


def read_save(text: str, *, name: str, family: Family) -> Ruleset:
    """Return the ruleset in ``text``; ``name`` is the input's name in diagnostics.

    Comment lines between the tables go to the next table's preamble or to the epilogue, those inside a table
    to its own preamble. Blank lines are skipped. Raises ParseError with up to 20 diagnostics, sorted by
    position.
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return read_lines(enumerate(lines, 1), name=name, family=family)


def read_lines(lines: Iterable[tuple[int, str]], *, name: str, family: Family) -> Ruleset:
    """Return the ruleset in numbered lines of ``iptables-save`` text; see :func:`read_save`."""
    return _SaveReader(name, family).read(lines)


def read_rules(
    lines: Iterable[tuple[int, str]],
    *,
    name: str,
    family: Family,
    table: TableName,
    whole: bool = True,
    excerpt: bool = False,
) -> Ruleset:
    """Return the ruleset of ``iptables -S`` output, given as numbered lines: one table.

    Without ``whole`` the lines are some rules of a table, as on a page: chains that are not created by ``-P``
    or ``-N`` then have unknown rules as well. In an ``excerpt``, rules that cannot be read are unknown,
    unless none can be read. Raises ParseError.
    """
    return _SaveReader(name, family, fragment=not whole, implicit=table, excerpt=excerpt).read(lines)


def read_fragment(
    lines: Iterable[tuple[int, str]],
    *,
    name: str,
    family: Family,
    may_be_cut: bool = False,
    excerpt: bool = False,
) -> Ruleset:
    """Return the ruleset of ``iptables-restore --noflush`` input, given as numbered lines.

    A declared chain is empty first, as with ``--noflush``; any other chain has unknown rules as well. With
    ``may_be_cut`` the text may end before ``COMMIT`` (a page that shows the head of a dump); then every chain
    of the last table may have unknown rules. In an ``excerpt``, rules that cannot be read are unknown, unless
    none can be read. Raises ParseError.
    """
    return _SaveReader(name, family, fragment=not may_be_cut, may_be_cut=may_be_cut, excerpt=excerpt).read(
        lines
    )


class _SaveReader:
    """Reader of one text. ``implicit`` is the table of a text that does not name it."""

    def __init__(
        self,
        name: str,
        family: Family,
        *,
        fragment: bool = False,
        may_be_cut: bool = False,
        implicit: TableName | None = None,
        excerpt: bool = False,
    ) -> None:
        self._name = name
        self._excerpt = excerpt
        self._unread: list[tuple[Origin, RuleError]] = []
        self._fragment = fragment
        self._may_be_cut = may_be_cut
        self._implicit = implicit is not None
        self._unknown: list[str] = []
        self._notes: list[str] = []
        self._family = family
        self._faults = Faults()
        self._commands = Commands(
            RuleReader(family), self._faults, fragment=fragment, implicit=implicit is not None
        )
        self._tables: list[TableBuilder] = []
        self._table: TableBuilder | None = None
        self._adrift = False  # outside any table, and already reported
        self._comments: list[str] = []
        self._last = Origin(name)
        if implicit is not None:
            self._table = TableBuilder(implicit, Origin(name), [])
            self._tables.append(self._table)

    def line(self, number: int, line: str) -> None:
        if len(line) > LONGEST_LINE:
            origin = Origin(self._name, number, LONGEST_LINE + 1)
            message = f"a line of {len(line)} characters; iptables-restore reads at most {LONGEST_LINE}"
            self._faults.report(origin, message)
            self._last = origin
            return
        origin = self._last = Origin(self._name, number, 1, line)
        first = line[:1]
        if first in ("-", "["):
            self._command(origin)
        elif first == ":":
            self._declaration(origin)
        elif first == "#":
            (self._comments if self._table is None else self._table.preamble).append(line)
            self._remark(number, line)
        elif first == "*":
            self._begin(origin)
        elif line.rstrip() == "COMMIT":
            self._commit(origin)
        elif line.strip(" \t"):
            self._command(origin)

    def _remark(self, number: int, line: str) -> None:
        """Note the rules that iptables-nft-save reports as not printed (``xtables_save_main``)."""
        legacy = _LEGACY.match(line)
        if legacy is not None:
            self._unknown.append(
                f"line {number}: the node also has rules of {legacy[1]}-legacy, which are not shown"
            )
        foreign = _FOREIGN.match(line)
        if foreign is not None:
            self._unknown.append(f"line {number}: table {foreign[1]} has rules that iptables cannot print")

    def _policies(self, table: Table) -> None:
        """Note the policies that are not in the text."""
        silent = [c.name for c in table.chains if c.hook is not None and c.policy is None]
        if silent and not self._fragment:
            names = ", ".join(silent)
            self._unknown.append(f"table {table.name} has no policy for {names}; ACCEPT is assumed")

    def read(self, lines: Iterable[tuple[int, str]]) -> Ruleset:
        for number, line in lines:
            self.line(number, line)
        return self.finish()

    def finish(self) -> Ruleset:
        if self._implicit:
            if self._table is not None and not self._table.chains and not self._faults:
                self._faults.report(Origin(self._name), "no chain and no rule in this text")
        elif self._table is not None and self._may_be_cut:
            self._unknown.append(f"table {self._table.name} is cut off after line {self._last.line}")
            for chain in self._table.chains.values():
                chain.rules.append(hidden_rule("the text is cut off before the rules end", self._last))
        elif self._table is not None:
            origin = self._last.at(len(self._last.text) + 1)
            self._faults.report(
                origin,
                f'table {self._table.name} has no "COMMIT": the text is truncated',
                f"it begins in line {self._table.origin.line}",
            )
        read = any(
            not rule.unknown
            for table in self._tables
            for chain in table.chains.values()
            for rule in chain.rules
        )
        if not read:
            for origin, error in self._unread:
                self._faults.report_rule(origin, error)
        self._unknown += [
            f"line {origin.line} is not read: {error.message}" for origin, error in self._unread
        ]
        tables = tuple(self._completed(table.freeze()) for table in self._tables)
        notes = (*self._notes, *self._commands.notes)
        if self._implicit or self._fragment:
            self._unknown.append(
                "other tables than these are not shown: " + ", ".join(t.name for t in tables)
            )
        for builder, table in zip(self._tables, tables, strict=True):
            self._policies(table)
            self._check(builder, table)
        self._faults.raise_if_any()
        return Ruleset(
            family=self._family,
            tables=tables,
            source=self._name,
            epilogue=tuple(self._comments),
            unknown=tuple(self._unknown),
            notes=notes,
        )

    def _check(self, builder: TableBuilder, table: Table | None = None) -> None:
        """Report faults that concern several chains of a table."""
        if builder.whole:
            self._faults.add(check_table(table or builder.freeze()))

    def _completed(self, table: Table) -> Table:
        """Return the table with the chains that a fragment does not show."""
        if not self._fragment:
            return table
        chains = {chain.name: chain for chain in table.chains}
        add_hidden(chains, table.name)
        return replace(table, chains=tuple(chains.values()))

    # -- tables ----------------------------------------------------------------------------------

    def _begin(self, origin: Origin) -> None:
        if self._table is not None:
            message = f'table {self._table.name} has no "COMMIT" before this line'
            self._faults.report(origin, message, f"it begins in line {self._table.origin.line}")
            self._table = None
        text = origin.text[1:].strip()
        self._adrift = True
        try:
            name = TableName(text)
        except ValueError:
            names = ", ".join(TableName)
            self._faults.report(origin.at(2), f'unknown table "{text}"', f"tables are {names}")
            return
        self._adrift = False
        before = next((table for table in self._tables if table.name is name), None)
        if before is not None and self._fragment:  # iptables-restore --noflush continues it
            before.preamble += self._comments
            self._table = before
        else:
            self._table = TableBuilder(name, origin, self._comments)
            if before is not None:
                self._table = self._replaced(before, origin)
            self._tables.append(self._table)
        self._comments = []

    def _replaced(self, before: TableBuilder, origin: Origin) -> TableBuilder:
        """Return the table that replaces an earlier one of the same name, and check the earlier one."""
        self._check(before)
        self._tables.remove(before)
        first, second = before.origin.line, origin.line
        self._notes.append(f"table {before.name} of line {first} is replaced by that of line {second}")
        return before.replaced_by(origin, self._comments)

    def _commit(self, origin: Origin) -> None:
        if self._table is None and not self._adrift:
            self._faults.report(origin, '"COMMIT" outside a table')
        self._table = None
        self._adrift = False

    def _outside(self, origin: Origin) -> None:
        """Report the first of consecutive lines outside of tables."""
        if not self._adrift:
            self._faults.report(
                origin, "expected a table, as in *filter", "is this the output of iptables-save?"
            )
            self._adrift = True

    # -- chains ----------------------------------------------------------------------------------

    def _declaration(self, origin: Origin) -> None:
        table = self._table
        if table is None:
            self._outside(origin)
            return
        match = _DECLARATION.fullmatch(origin.text)
        if match is not None:  # as iptables-save prints it
            read = Counters(int(match[3]), int(match[4]))
            policy_column = match.start(2) + 1
            table.declare(
                *(origin, 2, match[1], match[2], policy_column, read, self._faults), empties=self._fragment
            )
            return
        try:
            words = scan(origin.text[1:])
        except QuoteError as error:
            table.whole = False
            self._faults.report(origin.at(error.column + 1), "a double quote is opened and never closed")
            return
        # quotes have no meaning in these lines; a quoted word is not a name or a policy
        if not 2 <= len(words) <= 3:
            table.whole = False
            self._faults.report(origin, 'expected ":CHAIN POLICY [packets:bytes]"')
            return
        counters = None
        if len(words) == 3:
            match = COUNTERS.fullmatch(words[2].text)
            if match is None:
                table.whole = False
                message = f'"{words[2].text}" is not [packets:bytes]'
                self._faults.report(origin.at(words[2].column + 1), message)
                return
            counters = Counters(int(match[1]), int(match[2]))
        name, policy = words[0].text, words[1].text
        columns = [word.column + 1 for word in words]
        table.declare(
            *(origin, columns[0], name, policy, columns[1], counters, self._faults), empties=self._fragment
        )

    # -- rules -----------------------------------------------------------------------------------

    def _command(self, origin: Origin) -> None:
        table = self._table
        if table is None:
            self._outside(origin)
            return
        try:
            words = split(origin.text)
        except QuoteError as error:
            self._faults.report(origin.at(error.column), "a double quote is opened and never closed")
            return
        try:
            self._commands.run(table, words, origin)
        except RuleError as error:
            rule = words[1:] if words[0][:1] == "[" else words
            chain = table.chains.get(rule[1]) if len(rule) > 1 and rule[0] in APPEND else None
            if self._excerpt and chain is not None:
                chain.rules.append(hidden_rule(f"this line is not read: {error.message}", origin))
                self._unread.append((origin, error))
            else:
                self._faults.report_rule(origin, error)
