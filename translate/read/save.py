"""``iptables-save`` text, line by line.

What is read is what ``iptables-restore`` reads: comments, ``*table``, ``:CHAIN POLICY [p:b]``, rules
with or without counters, ``COMMIT``. Of its commands, those that build a ruleset are known
(``-A``, ``-I``, ``-N``, ``-P``); those that change an existing one (``-D``, ``-F``, ``-X``) only in a
fragment for ``iptables-restore --noflush``, where what is not shown is unknown.
A wrong line is reported and the next one is read, so that one run shows many faults.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from translate.errors import Diagnostic, ParseError
from translate.ir import (
    NOWHERE,
    TABLE_HOOKS,
    Chain,
    Counters,
    Family,
    Goto,
    Hook,
    Jump,
    Origin,
    Policy,
    Rule,
    Ruleset,
    Table,
    TableName,
)
from translate.read.base import RuleError, parse_counters
from translate.read.chains import check_table
from translate.read.extensions import TARGETS, UNREAD_TARGETS
from translate.read.hidden import add_hidden, hidden_rule
from translate.read.rule import RuleReader
from translate.read.scanner import QuoteError, scan, split

__all__ = ["LONGEST_LINE", "read_fragment", "read_rules", "read_save"]

LONGEST_LINE: Final = 10_238
"""Characters of a line that ``iptables-restore`` can read (``char buffer[10240]``)."""

_MOST_DIAGNOSTICS: Final = 20
_LONGEST_MESSAGE: Final = 400
_LONGEST_CHAIN: Final = 28  # XT_EXTENSION_MAXNAMELEN, less its NUL

_COUNTERS: Final = re.compile(r"\[([0-9]{1,20}):([0-9]{1,20})\]")
_DECLARATION: Final = re.compile(r':([^ \t"]+) ([^ \t"]+) \[([0-9]{1,20}):([0-9]{1,20})\]')
_HOOKS: Final = {table: {hook.value: hook for hook in hooks} for table, hooks in TABLE_HOOKS.items()}
_APPEND: Final = frozenset({"-A", "--append"})
_INSERT: Final = frozenset({"-I", "--insert"})
_NEW: Final = frozenset({"-N", "--new-chain"})
_POLICY: Final = frozenset({"-P", "--policy"})
_DELETE: Final = frozenset({"-D", "--delete"})
_FLUSH: Final = frozenset({"-F", "--flush"})
_REMOVE: Final = frozenset({"-X", "--delete-chain"})


@dataclass(slots=True)
class _Chain:
    name: str
    origin: Origin
    hook: Hook | None
    policy: Policy | None
    counters: Counters | None
    rules: list[Rule] = field(default_factory=list)

    def freeze(self) -> Chain:
        return Chain(
            name=self.name,
            rules=tuple(self.rules),
            hook=self.hook,
            policy=self.policy,
            counters=self.counters,
            origin=self.origin,
        )


@dataclass(slots=True)
class _Table:
    name: TableName
    origin: Origin
    preamble: list[str]
    chains: dict[str, _Chain] = field(default_factory=dict)
    whole: bool = True  # no declaration was lost, so that missing chains are really missing

    def freeze(self) -> Table:
        return Table(
            name=self.name,
            chains=tuple(chain.freeze() for chain in self.chains.values()),
            preamble=tuple(self.preamble),
            origin=self.origin,
        )


def read_save(text: str, *, name: str, family: Family) -> Ruleset:
    """Return the ruleset that ``text`` says; ``name`` is what diagnostics call the input.

    Comment lines between the tables go to the next table's preamble or to the epilogue, those
    inside a table to its own preamble. Blank lines and a carriage return at the end of a line are
    passed over. Raises ParseError with up to 20 diagnostics, sorted by position.
    """
    reader = _SaveReader(name, family)
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        reader.line(number, line)
    return reader.finish()


def read_rules(
    lines: Iterable[tuple[int, str]], *, name: str, family: Family, table: TableName, whole: bool = True
) -> Ruleset:
    """Return the ruleset of ``iptables -S`` output, given as numbered lines: one table.

    Without ``whole`` they are some of its rules, as printed on a page: chains that are not created
    by ``-P`` or ``-N`` are taken to hold more than is shown. Raises ParseError.
    """
    reader = _SaveReader(name, family, fragment=not whole)
    reader.enter(table)
    for number, line in lines:
        reader.line(number, line)
    reader.leave()
    return reader.finish()


def read_fragment(
    lines: Iterable[tuple[int, str]], *, name: str, family: Family, may_be_cut: bool = False
) -> Ruleset:
    """Return what ``iptables-restore`` input says, given as numbered lines: save text that changes rules.

    A chain that is declared is empty first, as ``--noflush`` makes it; what any other chain holds
    besides is unknown. With ``may_be_cut`` the text may end before ``COMMIT`` (a page that shows
    the head of a dump); then every chain of the last table may hold more. Raises ParseError.
    """
    reader = _SaveReader(name, family, fragment=not may_be_cut, may_be_cut=may_be_cut)
    for number, line in lines:
        reader.line(number, line)
    return reader.finish()


class _SaveReader:
    def __init__(
        self, name: str, family: Family, *, fragment: bool = False, may_be_cut: bool = False
    ) -> None:
        self._name = name
        self._fragment = fragment
        self._may_be_cut = may_be_cut
        self._implicit = False  # one table, that no line names
        self._notes: list[str] = []
        self._family = family
        self._rules = RuleReader(family)
        self._tables: list[_Table] = []
        self._table: _Table | None = None
        self._adrift = False  # outside any table, and already reported
        self._comments: list[str] = []
        self._diagnostics: list[Diagnostic] = []
        self._last = Origin(name)

    def line(self, number: int, line: str) -> None:
        if line.endswith("\r"):
            line = line[:-1]
        if len(line) > LONGEST_LINE:
            origin = Origin(self._name, number, LONGEST_LINE + 1)
            message = f"a line of {len(line)} characters; iptables-restore reads {LONGEST_LINE}"
            self._report(origin, message)
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
        elif first == "*":
            self._begin(origin)
        elif line.rstrip() == "COMMIT":
            self._commit(origin)
        elif line.strip(" \t"):
            self._command(origin)

    def enter(self, name: TableName) -> None:
        """Begin a table that no line names."""
        self._implicit = True
        self._table = _Table(name, Origin(self._name), [])
        self._tables.append(self._table)

    def leave(self) -> None:
        """End the table begun by :meth:`enter`."""
        if self._table is not None and not self._table.chains and not self._diagnostics:
            self._report(Origin(self._name), "no chain and no rule in this text")
        self._table = None

    def finish(self) -> Ruleset:
        if self._table is not None and self._may_be_cut:
            self._notes.append(f"table {self._table.name} is cut off behind line {self._last.line}")
            for chain in self._table.chains.values():
                chain.rules.append(hidden_rule("the text is cut off before the rules end", self._last))
        elif self._table is not None:
            origin = self._last.at(len(self._last.text) + 1)
            self._report(
                origin,
                f'table {self._table.name} has no "COMMIT": the text is truncated',
                f"it begins in line {self._table.origin.line}",
            )
        tables = tuple(self._completed(table.freeze()) for table in self._tables)
        if self._implicit or self._fragment:
            self._notes.append("other tables than these are not shown: " + ", ".join(t.name for t in tables))
        for builder, table in zip(self._tables, tables, strict=True):
            if builder.whole:
                self._diagnostics += check_table(table)
        if self._diagnostics:
            raise ParseError(_first(self._diagnostics))
        return Ruleset(
            family=self._family,
            tables=tables,
            source=self._name,
            epilogue=tuple(self._comments),
            unknown=tuple(self._notes),
        )

    def _completed(self, table: Table) -> Table:
        """In a fragment, add the chains that it does not show."""
        if not self._fragment:
            return table
        chains = {chain.name: chain for chain in table.chains}
        add_hidden(chains, table.name)
        return replace(table, chains=tuple(chains.values()))

    def _report(self, origin: Origin, message: str, hint: str | None = None) -> None:
        self._diagnostics.append(Diagnostic(origin, _printable(message), hint and _printable(hint)))

    # -- tables ----------------------------------------------------------------------------------

    def _begin(self, origin: Origin) -> None:
        if self._table is not None:
            message = f'table {self._table.name} has no "COMMIT" before this line'
            self._report(origin, message, f"it begins in line {self._table.origin.line}")
            self._table = None
        text = origin.text[1:].strip()
        self._adrift = True
        try:
            name = TableName(text)
        except ValueError:
            known = ", ".join(TableName)
            self._report(origin.at(2), f'unknown table "{text}"', f"tables are {known}")
            return
        for table in self._tables:
            if table.name is name:
                message = f"table {name} is given twice"
                self._report(origin.at(2), message, f"first in line {table.origin.line}")
                return
        self._adrift = False
        self._table = _Table(name, origin, self._comments)
        self._comments = []
        self._tables.append(self._table)

    def _commit(self, origin: Origin) -> None:
        if self._table is None and not self._adrift:
            self._report(origin, '"COMMIT" outside a table')
        self._table = None
        self._adrift = False

    def _outside(self, origin: Origin) -> None:
        """Report the first line of a stretch that belongs to no table."""
        if not self._adrift:
            self._report(origin, "expected a table, as in *filter", "is this the output of iptables-save?")
            self._adrift = True

    # -- chains ----------------------------------------------------------------------------------

    def _declaration(self, origin: Origin) -> None:
        table = self._table
        if table is None:
            self._outside(origin)
            return
        found = _DECLARATION.fullmatch(origin.text)
        if found is not None:  # as iptables-save prints it
            read = Counters(int(found[3]), int(found[4]))
            self._declare(table, origin.at(2), found[1], found[2], found.start(2) + 1, read)
            return
        try:
            words = scan(origin.text[1:])
        except QuoteError as error:
            table.whole = False
            self._report(origin.at(error.column + 1), "a double quote is opened and never closed")
            return
        # a quote has no meaning in these lines; what is quoted cannot be a name or a policy
        if not 2 <= len(words) <= 3:
            table.whole = False
            self._report(origin, 'expected ":CHAIN POLICY [packets:bytes]"')
            return
        counters = None
        if len(words) == 3:
            found = _COUNTERS.fullmatch(words[2].text)
            if found is None:
                table.whole = False
                message = f'"{words[2].text}" is not [packets:bytes]'
                self._report(origin.at(words[2].column + 1), message)
                return
            counters = Counters(int(found[1]), int(found[2]))
        name, policy = words[0].text, words[1].text
        self._declare(table, origin.at(words[0].column + 1), name, policy, words[1].column + 1, counters)

    def _declare(
        self,
        table: _Table,
        origin: Origin,
        name: str,
        policy_text: str,
        policy_column: int,
        counters: Counters | None,
    ) -> None:
        """Add a chain, or report why not. ``origin`` points at its name."""
        hook = _HOOKS[table.name].get(name)
        policy = None
        problem: tuple[Origin, str, str | None] | None = None
        existing = table.chains.get(name)
        if existing is not None:
            problem = origin, f'chain "{name}" is declared twice', f"first in line {existing.origin.line}"
        elif hook is None:
            if name in TARGETS or name in UNREAD_TARGETS:
                problem = origin, f'a chain cannot be called "{name}": it is a target', None
            elif name[0] in "-!" or len(name.encode("utf-8", "surrogateescape")) > _LONGEST_CHAIN:
                hint = f"a name has 1 to {_LONGEST_CHAIN} bytes and starts with neither - nor !"
                problem = origin, f'a chain cannot be called "{name}"', hint
            elif policy_text != "-":
                place = origin.at(policy_column)
                problem = place, f'user chain "{name}" cannot have a policy', 'write "-"'
        else:
            try:
                policy = Policy(policy_text)
            except ValueError:
                problem = origin.at(policy_column), f'unknown policy "{policy_text}"', "ACCEPT or DROP"
        if problem is not None:
            self._report(*problem)
        if existing is None:
            # also when reported: its rules and the jumps to it are no further fault
            table.chains[name] = _Chain(name, origin.at(1), hook, policy, counters)

    # -- rules -----------------------------------------------------------------------------------

    def _command(self, origin: Origin) -> None:
        table = self._table
        if table is None:
            self._outside(origin)
            return
        try:
            words = split(origin.text)
        except QuoteError as error:
            self._report(origin.at(error.column), "a double quote is opened and never closed")
            return
        try:
            self._run(table, words, origin)
        except RuleError as fault:
            self._report(_place(origin, fault), fault.message, fault.hint)

    def _run(self, table: _Table, words: list[str], origin: Origin) -> None:
        start = 0
        counters = None
        if words[0][:1] == "[":
            found = _COUNTERS.fullmatch(words[0])
            if found is None:
                raise RuleError(0, f'"{words[0]}" is not [packets:bytes]')
            counters = Counters(int(found[1]), int(found[2]))
            start = 1
        command = words[start] if start < len(words) else ""
        append = command in _APPEND
        if not append and command not in _INSERT:
            if counters is not None:
                raise RuleError(start, "expected a rule after its counters")
            self._other_command(table, words, origin)
            return
        if start + 1 >= len(words):
            raise RuleError(len(words), f'"{command}" needs a chain')
        chain = self._chain(table, words, start + 1)
        first = start + 2
        position = len(chain.rules)
        if not append:
            position = 0
            if first < len(words) and words[first].isascii() and words[first].isdigit():
                position = int(words[first][:10]) - 1
                if not 0 <= position <= len(chain.rules):
                    raise RuleError(first, f"chain {chain.name} has {len(chain.rules)} rules")
                first += 1
        rules = self._rules.read(
            words, first, table=table.name, chain=chain.name, counters=counters, origin=origin
        )
        if append:
            chain.rules += rules
            return
        for rule in rules:  # each is inserted at the same place, as iptables does
            chain.rules.insert(position, rule)

    def _chain(self, table: _Table, words: list[str], at: int) -> _Chain:
        chain = table.chains.get(words[at])
        if chain is None:
            builtin = words[at] in {hook.value for hook in TABLE_HOOKS[table.name]}
            line = f":{words[at]} ACCEPT [0:0]" if builtin else f":{words[at]} - [0:0]"
            # known from here on, so that each missing declaration is reported once
            hook = Hook(words[at]) if builtin else None
            known = _Chain(words[at], NOWHERE, hook, None, None)
            table.chains[words[at]] = known
            if self._fragment:
                known.rules.append(hidden_rule(f"what chain {known.name} held before", self._last))
                return known
            raise RuleError(at, f'chain "{words[at]}" is not declared', f'declare it by "{line}"')
        return chain

    def _other_command(self, table: _Table, words: list[str], origin: Origin) -> None:
        command = words[0]
        if command in _NEW and len(words) == 2:
            self._declare(table, origin.at(scan(origin.text)[1].column), words[1], "-", 1, None)
        elif command in _POLICY and len(words) in (3, 6):
            counters = None
            if len(words) == 6:  # iptables -S -v
                if words[3] != "-c" or not self._implicit:
                    raise RuleError(3, f'unexpected "{words[3]}"')
                counters = parse_counters(words, 4)
            if self._implicit:
                column = scan(origin.text)[1].column
                hooks = {hook.value for hook in TABLE_HOOKS[table.name]}
                if words[1] not in hooks:
                    raise RuleError(1, f'table {table.name} has no built-in chain "{words[1]}"')
                self._declare(table, origin.at(column), words[1], words[2], 1, counters)
                return
            chain = self._chain(table, words, 1)
            if chain.hook is None:
                raise RuleError(1, f'user chain "{chain.name}" cannot have a policy')
            if words[2] not in Policy.__members__:
                raise RuleError(2, f'unknown policy "{words[2]}"', "ACCEPT or DROP")
            chain.policy = Policy(words[2])
        elif self._fragment and command in _DELETE | _FLUSH | _REMOVE:
            self._change(table, words, origin)
        elif command in _NEW or command in _POLICY:
            raise RuleError(0, f'"{command}" has a wrong number of values')
        else:
            hint = "commands that are read: -A, -I, -N, -P"
            if command in _DELETE | _FLUSH | _REMOVE:
                hint = "it changes rules that are not shown; --input restore reads it so"
            raise RuleError(0, f'"{command}" is not read', hint)

    def _change(self, table: _Table, words: list[str], origin: Origin) -> None:
        """Do ``-F``, ``-X`` or ``-D`` to the chains of a fragment, as far as they are known."""
        command = words[0]
        if command in _DELETE:
            self._delete(table, words, origin)
            return
        if len(words) != 2:
            raise RuleError(min(len(words), 2), f'"{command}" is read with one chain')
        chain = table.chains.get(words[1])
        if command in _FLUSH:
            flushed = self._chain(table, words, 1)
            flushed.rules.clear()
            if flushed.hook is not None and flushed.policy is None:
                flushed.rules.append(hidden_rule(f"the policy of chain {flushed.name}", origin))
        elif chain is None:
            raise RuleError(1, f'chain "{words[1]}" is not declared', "declare it, so that it is empty")
        elif chain.hook is not None:
            raise RuleError(1, "a built-in chain cannot be deleted")
        elif chain.rules:
            raise RuleError(1, f'chain "{chain.name}" is not empty: it cannot be deleted')
        elif any(
            isinstance(action, Jump | Goto) and action.chain == chain.name
            for other in table.chains.values()
            for rule in other.rules
            for action in rule.actions
        ):
            raise RuleError(1, f'a rule leads to chain "{chain.name}": it cannot be deleted')
        else:
            del table.chains[words[1]]

    def _delete(self, table: _Table, words: list[str], origin: Origin) -> None:
        if len(words) < 3:
            raise RuleError(len(words), '"-D" needs a chain and a rule')
        chain = self._chain(table, words, 1)
        if len(words) == 3 and words[2].isascii() and words[2].isdigit():
            raise RuleError(2, "a rule is not deleted by number: what stood before it is not known")
        wanted = self._rules.read(words, 2, table=table.name, chain=chain.name, counters=None, origin=origin)
        if any(one.unknown for one in chain.rules):
            raise RuleError(1, f'which rule of chain "{chain.name}" this deletes is not known')
        for rule in wanted:
            found = next((one for one in chain.rules if replace(one, counters=None) == rule), None)
            if found is None:
                raise RuleError(1, f'chain "{chain.name}" has no such rule')
            chain.rules.remove(found)


def _place(origin: Origin, fault: RuleError) -> Origin:
    words = scan(origin.text)
    if fault.word >= len(words):
        return origin.at(len(origin.text.rstrip()) + 1)
    return origin.at(words[fault.word].column + fault.offset)


def _printable(text: str) -> str:
    """Return a message that any terminal takes, whatever the input held."""
    shown = "".join(c if c.isprintable() else "?" for c in text[:_LONGEST_MESSAGE])
    return shown + "…" if len(text) > _LONGEST_MESSAGE else shown


def _first(diagnostics: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the first diagnostics by position, and one that counts the others."""
    ordered = sorted(diagnostics, key=lambda d: (d.origin.line, d.origin.column))
    shown, rest = ordered[:_MOST_DIAGNOSTICS], ordered[_MOST_DIAGNOSTICS:]
    if rest:
        where = Origin(rest[0].origin.file, rest[0].origin.line, rest[0].origin.column)
        shown.append(Diagnostic(where, f"and {len(rest)} more from here on"))
    return tuple(shown)
