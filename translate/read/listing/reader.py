"""``iptables -L`` listings, row by row.

A listing is not complete. It hides parts of a rule and may print names instead of numbers; the hidden parts
are recorded in :attr:`~translate.ir.Rule.unknown`. Columns are those of ``print_header`` and
``print_rule_details`` (iptables ``xshared.c``): ``[num] [pkts bytes] target prot opt [in out] source
destination`` and then the text of matches and target.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from translate.dataclass import dataclass, field, replace
from translate.ir import (
    TABLE_HOOKS,
    Chain,
    Counters,
    Family,
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
from translate.read.extensions import TARGETS
from translate.read.listing.rows import (
    COLUMNS,
    ListingLayout,
    ListingRow,
    RowError,
    RowReader,
    exact_counters,
)
from translate.read.rule.base import RuleError
from translate.read.rule.reader import RuleReader
from translate.read.tables.checks import check_table
from translate.read.tables.faults import Faults
from translate.read.tables.hidden import add_hidden, hidden_rule

__all__ = ["CHAIN_HEADER", "read_listing"]

CHAIN_HEADER: Final = re.compile(
    r"\s*Chain (\S+) \((?:(\d+) references|policy (ACCEPT|DROP)(?: (\S+) packets, (\S+) bytes)?)\)\s*"
)
"""The line before a chain's rows."""

_ELISION: Final = ("...", "…")


@dataclass(slots=True)
class _Listed:
    name: str
    origin: Origin
    policy: Policy | None
    counters: Counters | None
    layout: ListingLayout | None = None
    rows: list[ListingRow] = field(default_factory=list)


def read_listing(
    lines: Iterable[tuple[int, str]],
    *,
    name: str,
    family: Family,
    table: TableName | None = None,
    excerpt: bool = False,
) -> Ruleset:
    """Return the ruleset of one table's listing, given as numbered lines.

    With ``table`` None, the table is the only one in which the listed chains and targets are valid. If there
    are several and filter, the default of iptables, is among them, filter is assumed, and the unknowns note
    it. Chains that are not shown become hidden chains (:mod:`translate.read.tables.hidden`).

    ``excerpt`` is for listings on a page: a row ``...`` means omitted rules, rows may lack the header of
    their chain, and an invalid address or an unreadable row is unknown, unless no row can be read. Without it
    each of these is a fault. Raises ParseError with up to 20 diagnostics, sorted by position.
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
        self._rows = RowReader(family, excerpt)
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
            hint = "expected Chain NAME (policy ACCEPT) or Chain NAME (2 references)"
            self._faults.report(origin, "the header of a chain is damaged", hint)
        elif columns is not None:
            self._columns(columns, origin)
        elif not text.startswith("#"):
            self._row(origin)

    def _end(self) -> None:
        if self._open and self._chains[-1].layout is None and not self._excerpt:
            self._faults.report(self._chains[-1].origin, "the listing is cut after this header")
        self._open = False

    def _begin(self, header: re.Match[str], origin: Origin) -> None:
        counters = exact_counters(header[4], header[5]) if header[4] else None
        policy = Policy(header[3]) if header[3] else None
        self._chains.append(_Listed(header[1], origin, policy, counters))
        self._open = True

    def _columns(self, columns: re.Match[str], origin: Origin) -> None:
        if not self._open or self._chains[-1].layout is not None:
            self._faults.report(origin, "column names without the header of a chain before them")
            return
        self._chains[-1].layout = ListingLayout(*(part is not None for part in columns.groups()))

    def _row(self, origin: Origin) -> None:
        if not self._open:
            if not self._excerpt:
                hint = "the listing is cut: a whole listing begins with a line Chain NAME (…)"
                self._faults.report(origin, "a rule without the header of its chain", hint)
                return
            self._chains.append(_Listed(f"?{origin.line}", origin, None, None))
            self._open = True
        chain = self._chains[-1]
        if chain.layout is None and not self._excerpt:
            self._faults.report(origin, "a rule without column names before it", "is the listing complete?")
            chain.layout = ListingLayout()
            return
        if self._excerpt and origin.text.strip() in _ELISION:
            chain.rows.append(ListingRow(origin, unknown=[Unknown("rules are left out here", Hidden.RULES)]))
            return
        try:
            chain.rows.append(self._rows.read(origin, chain.layout or ListingLayout()))
        except RowError as error:
            self._bad_row(origin.at(error.column), error.message, error.hint)
            chain.rows.append(ListingRow(origin, unknown=[_not_read(error.message)]))

    def _bad_row(self, place: Origin, message: str, hint: str | None) -> None:
        if self._excerpt:
            self._unread.append((place, message, hint))
        else:
            self._faults.report(place, message, hint)

    # -- the whole listing -------------------------------------------------------------------------------

    def finish(self, chosen: TableName | None) -> Ruleset:
        self._end()
        if not self._chains and not self._faults:
            self._faults.report(
                Origin(self._name), "no chain in this listing", "a listing has lines like Chain NAME (…)"
            )
        notes: list[str] = []
        table = self._table(notes, chosen)
        self._built_in(table)
        reader = RuleReader(self._family)
        chains: dict[str, Chain] = {}
        for listed in self._chains:
            chain = self._chain(listed, reader, table)
            first = chains.setdefault(chain.name, chain)
            if first is not chain and first != chain:
                hint = f"first in line {first.origin.line}"
                self._faults.report(
                    chain.origin, f'chain "{chain.name}" is listed twice with a difference', hint
                )
            if chain.name.startswith("?"):
                notes.append(f"line {chain.origin.line}: the rules from here on belong to an unknown chain")
        if len(self._unread) == sum(len(listed.rows) for listed in self._chains):
            for bad in self._unread:
                self._faults.report(*bad)
        notes += [f"line {place.line} is not read: {message}" for place, message, _ in self._unread]
        add_hidden(chains, table)
        whole = Table(name=table, chains=tuple(chains.values()), origin=self._at())
        if not self._faults:
            self._faults.add(check_table(whole))
        self._faults.raise_if_any()
        notes.append(f"other tables than {table} are not shown")
        return Ruleset(family=self._family, tables=(whole,), source=self._name, unknown=tuple(notes))

    def _at(self) -> Origin:
        return self._chains[0].origin if self._chains else Origin(self._name)

    def _table(self, notes: list[str], chosen: TableName | None) -> TableName:
        """Return the table in which everything shown is valid; report a fault if there is none.

        A ``chosen`` table is checked only on a page, where prose may have named it.
        """
        if chosen is not None and not self._excerpt:
            return chosen
        possible = set(TableName)
        for chain in self._chains:
            if chain.policy is not None:
                possible &= {t for t, hooks in TABLE_HOOKS.items() if chain.name in {h.value for h in hooks}}
            for row in chain.rows:
                extension = TARGETS.get(row.target or "")
                if extension is not None and extension.tables is not None:
                    possible &= extension.tables
        if chosen is not None and chosen not in possible:
            self._faults.report(self._at(), f"table {chosen} cannot have all of the listed rules")
        if chosen is not None or len(possible) == 1:
            return chosen or possible.pop()
        if TableName.FILTER in possible:
            notes.append("the table is not shown; filter is assumed, the default of iptables")
        elif possible:
            self._faults.report(self._at(), "the listing does not show its table", "name it with --table")
        else:
            self._faults.report(self._at(), "no table can have all of the listed rules")
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
