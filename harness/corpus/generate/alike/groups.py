"""Groups of rules that differ only in constants, such as the rules of two services.

A ruleset that a program wrote repeats the same few rules thousands of times, with other addresses, ports and
chains. A :class:`Member` is one such group of rules, for example the rules of one service. It consists of its
entries, which are rules of chains that several members share, and of the chains to which only its entries
lead. Members with equal ``shape`` differ only in their constants: a packet for one becomes a packet for the
other when the constants are exchanged (:mod:`~harness.corpus.generate.alike.exchange`).

Members are found in the rules as written. Names of chains, comments and the lowered Program play no part.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final, NamedTuple

from harness.corpus.generate.selection import Place
from translate.dataclass import dataclass, field, replace
from translate.ir import (
    Action,
    Chain,
    Dnat,
    Field,
    FieldTest,
    Goto,
    Interval,
    Jump,
    Masquerade,
    NatPorts,
    Recent,
    Redirect,
    Rule,
    Ruleset,
    Snat,
    Table,
    TableName,
    Test,
    Value,
)

__all__ = ["Constant", "Kind", "Member", "members_of"]

_ChainId = tuple[TableName, str]


class Kind:
    """Kinds of constants. Constants of different kinds are never equal."""

    ADDRESS: Final = "address"
    PORT: Final = "port"
    LIST: Final = "list"


_KINDS: Final = {
    Field.SADDR: Kind.ADDRESS,
    Field.DADDR: Kind.ADDRESS,
    Field.CT_ORIGINAL_SADDR: Kind.ADDRESS,
    Field.CT_ORIGINAL_DADDR: Kind.ADDRESS,
    Field.CT_REPLY_SADDR: Kind.ADDRESS,
    Field.CT_REPLY_DADDR: Kind.ADDRESS,
    Field.SPORT: Kind.PORT,
    Field.DPORT: Kind.PORT,
    Field.CT_ORIGINAL_SPORT: Kind.PORT,
    Field.CT_ORIGINAL_DPORT: Kind.PORT,
    Field.CT_REPLY_SPORT: Kind.PORT,
    Field.CT_REPLY_DPORT: Kind.PORT,
}
"""The fields whose values may differ between members. All other values (marks, interfaces) must be equal."""


class Constant(NamedTuple):
    """A value of a rule: an interval of addresses or ports, or the name of a list of ``-m recent``."""

    kind: str
    value: Interval | str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Member:
    """A group of rules that differs from other groups only in constants, such as the rules of one service.

    ``places`` are its rules, its ``entries`` (in chains that it shares with others) first. ``constants`` are
    in the order in which the rules name them: constants at the same position of two members with equal
    ``shape`` have the same role. ``targets`` are the constants to which rules send packets (DNAT).
    """

    entries: tuple[Place, ...]
    places: tuple[Place, ...]
    constants: tuple[Constant, ...]
    targets: frozenset[Constant]
    keys: tuple[tuple[Interval | None, int | None, Interval | None], ...]
    """The destination that each entry tests for: address, protocol and port."""
    shape: Hashable = field(repr=False)


def members_of(ruleset: Ruleset) -> list[Member]:
    """Return the members of a ruleset in the order of their first rules."""
    groups = _Groups(ruleset)
    return [_Reader(groups, entries).member() for entries in groups.groups()]


@dataclass(slots=True)
class _Groups:
    """The shared chains, and groups of their rules that lead to the same chain or test for the same port."""

    ruleset: Ruleset
    order: dict[TableName, Table] = field(default_factory=dict)
    shared: set[_ChainId] = field(default_factory=set)
    _bearing: set[_ChainId] = field(default_factory=set)
    """Chains with constants, and chains from which jumps lead to a chain with constants."""
    _parents: dict[Hashable, Hashable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for table in self.ruleset.tables:
            self.order[table.name] = table
        for table in self.ruleset.tables:
            self._bear(table)
            pending = [c for c in table.chains if c.hook is not None]
            self.shared.update((table.name, c.name) for c in pending)
            while pending:
                for rule in pending.pop().rules:
                    callee = None if _has_constants(rule) else self.called(table.name, rule)
                    if callee is not None and (table.name, callee.name) not in self.shared:
                        self.shared.add((table.name, callee.name))
                        pending.append(callee)

    def _bear(self, table: Table) -> None:
        callers: dict[str, list[str]] = {}
        for chain in table.chains:
            for rule in chain.rules:
                callee = self.called(table.name, rule)
                if callee is not None:
                    callers.setdefault(callee.name, []).append(chain.name)
        pending = [c.name for c in table.chains if any(_has_constants(rule) for rule in c.rules)]
        while pending:
            name = pending.pop()
            if (table.name, name) not in self._bearing:
                self._bearing.add((table.name, name))
                pending += callers.get(name, ())

    def called(self, table: TableName, rule: Rule) -> Chain | None:
        """Return the chain of the table that the rule jumps to, or None."""
        action = rule.actions[0] if rule.actions else None
        return self.order[table].chain(action.chain) if isinstance(action, Jump | Goto) else None

    def own(self, table: TableName, rule: Rule) -> Chain | None:
        """Return the chain that the rule jumps to, if it has constants and is not shared."""
        chain = self.called(table, rule)
        if chain is None or (table, chain.name) in self.shared or (table, chain.name) not in self._bearing:
            return None
        return chain

    def groups(self) -> Iterator[list[Place]]:
        """Yield the entries of each member."""
        entries: list[Place] = []
        for table in self.ruleset.tables:
            for chain in table.chains:
                if (table.name, chain.name) not in self.shared:
                    continue
                for index, rule in enumerate(chain.rules):
                    if _has_constants(rule):
                        entries.append((table.name, chain.name, index))
                        self._join_all(entries[-1], rule)
        groups: dict[Hashable, list[Place]] = {}
        for place in entries:
            groups.setdefault(self._root(place), []).append(place)
        yield from groups.values()

    def _join_all(self, place: Place, rule: Rule) -> None:
        key = _key(rule)
        if key[2] is not None:
            self._join(place, key)
        pending = [self.own(place[0], rule)]
        while pending:
            chain = pending.pop()
            if chain is None:
                continue
            known = (place[0], chain.name) in self._parents
            self._join(place, (place[0], chain.name))
            if not known:
                pending += [self.own(place[0], called) for called in chain.rules]

    def _root(self, node: Hashable) -> Hashable:
        root = node
        while (above := self._parents.setdefault(root, root)) != root:
            root = above
        while self._parents[node] != root:
            self._parents[node], node = root, self._parents[node]
        return root

    def _join(self, first: Hashable, other: Hashable) -> None:
        self._parents[self._root(other)] = self._root(first)


@dataclass(slots=True)
class _Reader:
    """Reads the rules of one member, and numbers its chains and constants in order of appearance."""

    groups: _Groups
    entries: list[Place]
    _constants: dict[Constant, int] = field(default_factory=dict)
    _targets: set[Constant] = field(default_factory=set)
    _chains: dict[_ChainId, int] = field(default_factory=dict)
    _pending: list[_ChainId] = field(default_factory=list)

    def member(self) -> Member:
        shape: list[Hashable] = []
        places = list(self.entries)
        keys = []
        for table, chain, index in self.entries:
            owner = self.groups.order[table].chain(chain)
            assert owner is not None
            shape.append((table, chain, self._rule(table, owner.rules[index])))
            keys.append(_key(owner.rules[index]))
        for table, name in self._pending:  # the loop appends to this list
            owner = self.groups.order[table].chain(name)
            assert owner is not None
            places += ((table, name, index) for index in range(len(owner.rules)))
            shape.append(tuple([self._rule(table, rule) for rule in owner.rules]))
        return Member(
            entries=tuple(self.entries),
            places=tuple(places),
            constants=tuple(self._constants),
            targets=frozenset(self._targets),
            keys=tuple(keys),
            shape=tuple(shape),
        )

    def _rule(self, table: TableName, rule: Rule) -> Hashable:
        tests = tuple([self._test(test) for test in rule.tests])
        return tests, tuple([self._action(table, rule, action) for action in rule.actions]), rule.unknown

    def _test(self, test: Test) -> Hashable:
        match test:
            case FieldTest(field=about, mask=None) if about in _KINDS:
                values = tuple([self._value(_KINDS[about], value) for value in test.values])
                return about, test.negated, values
            case Recent():
                number = self._number(Constant(Kind.LIST, test.name))
                return replace(test, name=str(number))
            case _:
                return test

    def _action(self, table: TableName, rule: Rule, action: Action) -> Hashable:
        match action:
            case Jump() | Goto():
                own = self.groups.own(table, rule)
                if own is None:
                    return action
                chain = table, own.name
                if chain not in self._chains:
                    self._chains[chain] = len(self._chains)
                    self._pending.append(chain)
                return type(action), self._chains[chain]
            case Dnat(addresses, ports) | Snat(addresses, ports):
                address = None if addresses is None else self._value(Kind.ADDRESS, addresses)
                if isinstance(action, Dnat) and addresses is not None:
                    self._targets.add(Constant(Kind.ADDRESS, addresses))
                return type(action), address, *self._ports(ports)
            case Masquerade(ports) | Redirect(ports):
                return type(action), *self._ports(ports)
            case _:
                return action

    def _ports(self, ports: NatPorts) -> tuple[Hashable, Hashable]:
        number = None if ports.interval is None else self._value(Kind.PORT, ports.interval)
        return number, replace(ports, interval=None)

    def _value(self, kind: str, value: Value) -> Hashable:
        if not isinstance(value, Interval):
            return value
        return self._number(Constant(kind, value)), value.size

    def _number(self, constant: Constant) -> int:
        return self._constants.setdefault(constant, len(self._constants))


def _has_constants(rule: Rule) -> bool:
    return any(isinstance(t, FieldTest) and t.field in _KINDS and t.mask is None for t in rule.tests)


def _key(rule: Rule) -> tuple[Interval | None, int | None, Interval | None]:
    """Return the tested address, protocol and port; None for one of them without a single value."""
    constants: dict[Field, Interval] = {}
    for test in rule.tests:
        if isinstance(test, FieldTest) and not test.negated and len(test.values) == 1:
            value = test.values[0]
            if isinstance(value, Interval):
                constants[test.field] = value
    proto = constants.get(Field.L4PROTO)
    return constants.get(Field.DADDR), None if proto is None else proto.low, constants.get(Field.DPORT)
