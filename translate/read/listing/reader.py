"""``iptables -L`` listings, row by row.

A listing is made for people. It hides parts of a rule and may print names instead of numbers; the hidden
parts are recorded in :attr:`~translate.ir.Rule.unknown`. Columns are those of
``print_header`` and ``print_rule_details`` (iptables ``xshared.c``): ``[num] [pkts bytes] target prot
opt [in out] source destination`` and then what matches and target print.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from translate.ir import (
    TABLE_HOOKS,
    Chain,
    Counters,
    Family,
    Field,
    Hidden,
    Hook,
    Origin,
    Policy,
    Rule,
    Ruleset,
    Table,
    TableName,
    Unknown,
)
from translate.read.extensions import TARGETS, UNMODELLED_TARGETS
from translate.read.listing.printed import PrintedError, everywhere, parse_printed
from translate.read.rule.base import RuleError
from translate.read.rule.reader import RuleReader
from translate.read.spelling.address import parse_address_mask, parse_host
from translate.read.spelling.errors import OptionError
from translate.read.spelling.names import protocol_number
from translate.read.tables.checks import check_table
from translate.read.tables.faults import Faults
from translate.read.tables.hidden import add_hidden, hidden_rule

__all__ = ["CHAIN_HEADER", "COLUMNS", "ROW", "read_listing"]

CHAIN_HEADER: Final = re.compile(
    r"\s*Chain (\S+) \((?:(\d+) references|policy (ACCEPT|DROP)(?: (\S+) packets, (\S+) bytes)?)\)\s*"
)
"""The line before a chain's rows."""

COLUMNS: Final = re.compile(
    r"\s*(num\s+)?(pkts\s+bytes\s+)?target\s+prot\s+opt\s+(in\s+out\s+)?source\s+destination\s*"
)
"""The line that names the columns."""

ROW: Final = re.compile(
    r"\s*(?:\d+\s+){0,1}(?:\d+[KMGT]?\s+\d+[KMGT]?\s+)?(?:\S+\s+)?!?[a-z0-9-]+\s+(?:--|-f|!f)\s+\S+\s+\S+.*"
)
"""The pattern of a row that is recognised in the middle of prose."""

_AMOUNT: Final = re.compile(r"[0-9]+[KMGT]?")
_OPT: Final = ("--", "-f", "!f")
_LETTER: Final = re.compile("[A-Za-z]")
_NO_INTERFACES: Final = Unknown(
    "the listing hides interfaces (iptables -L without -v)", Hidden.TESTS, (Field.IIF, Field.OIF)
)
_ELISION: Final = ("...", "…")

_EXACT: Final = re.compile(r"[0-9]{1,20}")
"""A counter in full; larger ones are printed with K, M or G unless iptables is given ``-x``."""
_PLAIN_TARGETS: Final = frozenset({"ACCEPT", "DROP", "RETURN"})
"""Targets without options."""


@dataclass(frozen=True, slots=True)
class _Layout:
    numbered: bool = False
    counted: bool = False
    interfaces: bool = False


@dataclass(slots=True)
class _Row:
    """A row as words of a rule, before its table is known. ``tail`` is the column behind the addresses."""

    origin: Origin
    tail: int = 1
    target: str | None = None
    words: list[str] = field(default_factory=list)
    counters: Counters | None = None
    unknown: list[Unknown] = field(default_factory=list)


@dataclass(slots=True)
class _Listed:
    name: str
    origin: Origin
    policy: Policy | None
    counters: Counters | None
    layout: _Layout | None = None
    rows: list[_Row] = field(default_factory=list)


class _RowError(Exception):
    def __init__(self, column: int, message: str, hint: str | None = None) -> None:
        self.column = column
        self.message = message
        self.hint = hint
        super().__init__(message)


def read_listing(
    lines: Iterable[tuple[int, str]],
    *,
    name: str,
    family: Family,
    table: TableName | None = None,
    excerpt: bool = False,
) -> Ruleset:
    """Return the ruleset of one table's listing, given as numbered lines.

    ``table`` None: the only table in which the chains and targets shown can stand, otherwise filter
    if they can stand there, which is what iptables lists by default (the result says so among its
    unknowns). Chains that are not shown become hidden chains (:mod:`translate.read.tables.hidden`).

    ``excerpt`` is for listings on a page: a row ``...`` stands for rules left out, rows may lack the
    header of their chain, an address that is none is unknown, and so is a row that cannot be read, unless
    none can. Without it each of these is a fault.
    Raises ParseError with up to 20 diagnostics, sorted by position.
    """
    reader = _ListingReader(name, family, excerpt=excerpt)
    for number, line in lines:
        reader.line(Origin(name, number, 1, line))
    return reader.finish(table)


class _ListingReader:
    def __init__(self, name: str, family: Family, *, excerpt: bool) -> None:
        self._name = name
        self._family = family
        self._excerpt = excerpt
        self._chains: list[_Listed] = []
        self._open = False  # in a chain, until a blank line
        self._faults = Faults()
        self._unread: list[tuple[Origin, str, str | None]] = []

    # -- lines -----------------------------------------------------------------------------------

    def line(self, origin: Origin) -> None:
        text = origin.text
        header = CHAIN_HEADER.fullmatch(text)
        columns = COLUMNS.fullmatch(text)
        if not text.strip():
            self._end()
        elif header is not None:
            self._end()
            self._begin(header, origin)
        elif text.startswith("Chain "):
            hint = "it reads: Chain NAME (policy ACCEPT), or: Chain NAME (2 references)"
            self._faults.report(origin, "the header of a chain is damaged", hint)
        elif columns is not None:
            self._columns(columns, origin)
        elif not text.startswith("#"):
            self._row(origin)

    def _end(self) -> None:
        if self._open and self._chains[-1].layout is None and not self._excerpt:
            self._faults.report(self._chains[-1].origin, "the listing is cut behind this header")
        self._open = False

    def _begin(self, header: re.Match[str], origin: Origin) -> None:
        counters = None
        if header[4] and _EXACT.fullmatch(header[4]) and _EXACT.fullmatch(header[5]):
            counters = Counters(int(header[4]), int(header[5]))
        policy = Policy(header[3]) if header[3] else None
        self._chains.append(_Listed(header[1], origin, policy, counters))
        self._open = True

    def _columns(self, columns: re.Match[str], origin: Origin) -> None:
        if not self._open or self._chains[-1].layout is not None:
            self._faults.report(origin, "names of columns without the header of a chain before them")
            return
        self._chains[-1].layout = _Layout(*(part is not None for part in columns.groups()))

    def _row(self, origin: Origin) -> None:
        if not self._open:
            if not self._excerpt:
                hint = "the listing is cut: it begins with a line Chain NAME (…)"
                self._faults.report(origin, "a rule without the header of its chain", hint)
                return
            self._chains.append(_Listed(f"?{origin.line}", origin, None, None))
            self._open = True
        chain = self._chains[-1]
        if chain.layout is None and not self._excerpt:
            self._faults.report(origin, "a rule before the names of the columns", "is the listing whole?")
            chain.layout = _Layout()
            return
        if self._excerpt and origin.text.strip() in _ELISION:
            chain.rows.append(_Row(origin, unknown=[Unknown("rules are left out here", Hidden.RULES)]))
            return
        try:
            chain.rows.append(self._read_row(origin, chain.layout or _Layout()))
        except _RowError as error:
            self._bad_row(origin.at(error.column), error.message, error.hint)
            chain.rows.append(_Row(origin, unknown=[_not_read(error.message)]))

    def _bad_row(self, place: Origin, message: str, hint: str | None) -> None:
        if self._excerpt:
            self._unread.append((place, message, hint))
        else:
            self._faults.report(place, message, hint)

    # -- rows ------------------------------------------------------------------------------------

    def _read_row(self, origin: Origin, layout: _Layout) -> _Row:
        text = origin.text
        cells = list(re.finditer(r"\S+", text))
        at = 1 if layout.numbered else 0
        amounts = [cell[0] for cell in cells[at : at + 2]] if layout.counted else []
        if layout.counted:
            at += 2
        if not all(_AMOUNT.fullmatch(amount) for amount in amounts):
            raise _RowError(1, "packets and bytes were expected here", "the columns name them")
        named = _has_target(cells, at)
        after = at + (1 if named else 0)
        opt = after + 1 < len(cells) and cells[after + 1][0] in _OPT
        source = after + (2 if opt else 1) + (2 if layout.interfaces else 0)
        if source + 1 >= len(cells):
            raise _RowError(len(text.rstrip()) + 1, "the row ends before its destination", "is it cut?")
        destination = cells[source + 1]
        row = _Row(origin, tail=destination.end() + 1, target=cells[at][0] if named else None)
        if amounts and all(map(_EXACT.fullmatch, amounts)):
            row.counters = Counters(int(amounts[0]), int(amounts[1]))
        self._address(row, "-s", "source", cells[source])
        self._address(row, "-d", "destination", destination)
        if layout.interfaces:
            for option, cell in zip(("-i", "-o"), cells[source - 2 : source], strict=True):
                if cell[0] not in ("*", "any"):
                    row.words += _inverted(option, cell[0])
        else:
            row.unknown.append(_NO_INTERFACES)
        if protocol_number(cells[after][0].lstrip("!")) != 0:
            row.words += _inverted("-p", cells[after][0])
        if opt and cells[after + 1][0] != "--":
            row.words += ["-f"] if cells[after + 1][0] == "-f" else ["!", "-f"]
        self._tail(row, text[destination.end() :].rstrip(), destination.end())
        return row

    def _address(self, row: _Row, option: str, side: str, cell: re.Match[str]) -> None:
        text = cell[0].removeprefix("!")
        if text == "anywhere":
            if text != cell[0]:
                row.words += ["!", option, everywhere(self._family)]
            return
        try:
            parsed = parse_address_mask(self._family, text, option=0)
            parse_host(self._family, text.partition("/")[0], option=0)  # which may be spoilt before a /0
        except OptionError as error:
            tested = (Field.SADDR if side == "source" else Field.DADDR,)
            if _LETTER.search(text):
                reason = f'the {side} "{cell[0]}" is printed by name'
            elif self._excerpt:
                reason = f'the {side} "{cell[0]}" is not an address'
            else:
                raise _RowError(cell.start() + 1 + error.offset, error.message, error.hint) from None
            row.unknown.append(Unknown(reason, Hidden.TESTS, tested))
            return
        if not parsed.is_everything or text != cell[0]:
            row.words += _inverted(option, cell[0])

    def _tail(self, row: _Row, text: str, start: int) -> None:
        unmodelled = None if row.target is None else UNMODELLED_TARGETS.get(row.target)
        try:
            if unmodelled is not None:
                raise PrintedError(0, text.strip() or unmodelled.name)
            printed = parse_printed(text, row.target, self._family)
        except PrintedError as error:
            if self._excerpt:
                message = f'no match or target that is modelled prints "{error.text}"'
                raise _RowError(start + error.offset + 1, message) from None
            self._keep_unknown(row, text, error.text)
            return
        row.words += printed.matches
        if row.target is None:
            return
        if printed.translated is not None and not self._is_address(printed.translated):
            reason = f'target {row.target} goes to "{printed.translated}", which is a name'
            row.unknown.append(Unknown(reason, Hidden.ACTION))
            row.target = None
            return
        row.words += ["-g" if printed.goto else "-j", row.target, *printed.options]
        if printed.translated is not None:
            option = "--to-destination" if row.target == "DNAT" else "--to-source"
            row.words += [option, printed.translated]

    def _keep_unknown(self, row: _Row, text: str, unread: str) -> None:
        """Take a row whose tail is not understood for one that may match, and may do what its target does."""
        reason = f'"{unread}" is not modelled'
        row.unknown.append(Unknown(reason, Hidden.TESTS))
        target, row.target = row.target, None
        if target is None:
            return
        if target in _PLAIN_TARGETS or not (target in TARGETS or target in UNMODELLED_TARGETS):
            row.target = target
            row.words += ["-g" if "[goto]" in text.split() else "-j", target]
            return
        hides = UNMODELLED_TARGETS[target].hides if target in UNMODELLED_TARGETS else Hidden.ACTION
        row.unknown.append(Unknown(f"-j {target}: {reason}", hides))

    def _is_address(self, translated: str) -> bool:
        if not _LETTER.search(translated) or self._family is Family.IP6:
            return True  # numbers; a fault in them is the rule reader's to report
        try:
            parse_host(self._family, translated.partition(":")[0], option=0)
        except OptionError:
            return False
        return True

    # -- the whole -------------------------------------------------------------------------------

    def finish(self, given: TableName | None) -> Ruleset:
        self._end()
        if not self._chains and not self._faults:
            self._faults.report(
                Origin(self._name), "no chain in this listing", "it has lines: Chain NAME (…)"
            )
        notes: list[str] = []
        table = self._table(notes, given)
        self._built_in(table)
        reader = RuleReader(self._family)
        chains: dict[str, Chain] = {}
        for listed in self._chains:
            chain = self._chain(listed, reader, table)
            first = chains.setdefault(chain.name, chain)
            if first is not chain and first != chain:
                hint = f"first in line {first.origin.line}"
                self._faults.report(chain.origin, f'chain "{chain.name}" is listed twice, differently', hint)
            if chain.name.startswith("?"):
                notes.append(f"line {chain.origin.line}: the rules from here on are of an unknown chain")
        if len(self._unread) == sum(len(listed.rows) for listed in self._chains):
            for bad in self._unread:
                self._faults.report(*bad)
        notes += [f"line {place.line} is not read: {message}" for place, message, _ in self._unread]
        add_hidden(chains, table)
        whole = Table(name=table, chains=tuple(chains.values()), origin=self._at())
        if not self._faults:
            self._faults.add(check_table(whole))
        self._faults.raise_any()
        notes.append(f"other tables than {table} are not shown")
        return Ruleset(family=self._family, tables=(whole,), source=self._name, unknown=tuple(notes))

    def _at(self) -> Origin:
        return self._chains[0].origin if self._chains else Origin(self._name)

    def _table(self, notes: list[str], given: TableName | None) -> TableName:
        """Return the table in which everything shown can stand; report when there is none.

        On a page that is to be the one that is ``given`` by what stands above; elsewhere it just is.
        """
        if given is not None and not self._excerpt:
            return given
        possible = set(TableName)
        for chain in self._chains:
            if chain.policy is not None:
                possible &= {t for t, hooks in TABLE_HOOKS.items() if chain.name in {h.value for h in hooks}}
            for row in chain.rows:
                extension = TARGETS.get(row.target or "")
                if extension is not None and extension.tables is not None:
                    possible &= extension.tables
        if given is not None and given not in possible:
            self._faults.report(self._at(), f"table {given} cannot hold all that is listed")
        if given is not None or len(possible) == 1:
            return given or possible.pop()
        if TableName.FILTER in possible:
            notes.append("which table is listed is not shown; taken for filter, as iptables lists by default")
        elif possible:
            self._faults.report(self._at(), "the listing does not show its table", "name it with --table")
        else:
            self._faults.report(self._at(), "no table can hold all that is listed")
        return TableName.FILTER

    def _built_in(self, table: TableName) -> None:
        hooks = {hook.value for hook in TABLE_HOOKS[table]}
        for chain in self._chains:
            if chain.policy is not None and chain.name not in hooks:
                self._faults.report(chain.origin, f'table {table} has no built-in chain "{chain.name}"')
            elif chain.policy is None and chain.name in hooks:
                self._faults.report(
                    chain.origin, f'built-in chain "{chain.name}" is shown without its policy'
                )

    def _chain(self, listed: _Listed, reader: RuleReader, table: TableName) -> Chain:
        rules: list[Rule] = []
        for row in listed.rows:
            try:
                read = reader.read(
                    row.words,
                    0,
                    table=table,
                    chain=listed.name,
                    counters=row.counters,
                    origin=row.origin,
                )
            except RuleError as error:
                self._bad_row(row.origin.at(row.tail), error.message, error.hint)
                if self._excerpt:
                    rules.append(hidden_rule(_not_read(error.message).reason, row.origin))
                continue
            rules += (replace(rule, unknown=(*rule.unknown, *row.unknown)) for rule in read)
        hook = Hook(listed.name) if listed.policy is not None and listed.name in set(Hook) else None
        return Chain(
            name=listed.name,
            rules=tuple(rules),
            hook=hook,
            policy=listed.policy,
            counters=listed.counters,
            origin=listed.origin,
        )


def _not_read(message: str) -> Unknown:
    return Unknown(f"this line is not read: {message}", Hidden.RULES)


def _inverted(option: str, cell: str) -> list[str]:
    return ["!", option, cell[1:]] if cell.startswith("!") else [option, cell]


def _has_target(cells: list[re.Match[str]], at: int) -> bool:
    """Return True if the column of targets is filled; it is blank for a rule that only counts.

    The column ``opt`` tells, where it is not blank itself (``ip6tables`` before 1.8.9).
    """
    words = [cell[0] for cell in cells[at : at + 3]]
    if len(words) == 3 and words[2] in _OPT:
        return True
    if len(words) >= 2 and words[1] in _OPT:
        return False
    if len(words) >= 2 and protocol_number(words[1].lstrip("!")) is not None:
        return True
    if words and protocol_number(words[0].lstrip("!")) is not None:
        return False
    column = cells[at].start() + 1 if at < len(cells) else 1
    raise _RowError(column, "a target and a protocol were expected here", "the listing may be cut")
