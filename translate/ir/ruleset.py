"""The Ruleset: rules as written, in the order in which they were written."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from translate.dataclass import dataclass, field, replace
from translate.ir.actions import Action, Goto, Jump
from translate.ir.family import Family
from translate.ir.fields import Field
from translate.ir.hooks import Hook, TableName
from translate.ir.matches import ClusterShare, ConnLabel, Recent, SetTest, SetUpdate, Test
from translate.ir.origin import NOWHERE, Origin
from translate.ir.sets import IpSet
from translate.ir.sideeffects import SideEffect

__all__ = [
    "Chain",
    "Counters",
    "Hidden",
    "Option",
    "Policy",
    "Rule",
    "Ruleset",
    "Spelled",
    "Table",
    "Unknown",
]


class Policy(StrEnum):
    """The verdict on packets that reach the end of a built-in chain."""

    ACCEPT = "ACCEPT"
    DROP = "DROP"


@dataclass(frozen=True, slots=True)
class Counters:
    """Packets and bytes, as ``iptables-save -c`` prints them."""

    packets: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Option:
    """One option as spelled: ``! --dport 53`` is ``Option("--dport", ("53",), negated=True)``.

    Arguments are unquoted; negation is always kept in the modern place, before the option.
    """

    name: str
    arguments: tuple[str, ...] = ()
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Spelled:
    """A match or a target as spelled: its extension's name and its options in order."""

    name: str
    options: tuple[Option, ...] = ()


class Hidden(StrEnum):
    """The part of a rule that is not known."""

    TESTS = "tests"
    """The rule may have more tests than are given."""
    ACTION = "action"
    """The action of the rule."""
    RULES = "rules"
    """The rule represents any number of rules."""
    EFFECT = "effect"
    """An effect on something that is not modelled; packets pass unchanged."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part of a rule that is not known, and why. ``fields`` are the fields that hidden tests may read.

    ``extension`` names a match or target that is not modelled and is kept as spelled. It is empty if the
    input does not show that part of the rule. ``kind`` is the feature of a refusal for a match, target or
    option that no translation has; it is empty if only some values are not modelled.
    """

    reason: str
    hides: Hidden
    fields: tuple[Field, ...] = ()
    extension: str = ""
    kind: str = field(default="", compare=False)

    @property
    def feature(self) -> str:
        """The feature by which a backend refuses the rule (:class:`~translate.errors.Refusal`)."""
        return self.kind or ("unmodelled" if self.extension else "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule: its spelling, its meaning and its origin.

    ``base`` (``-s``, ``-d``, ``-i``, ``-o``, ``-p``, ``-f``), ``matches`` and ``target`` are the spelling;
    only ``write`` and reports read them. ``tests`` and ``actions`` are the meaning. ``actions`` has one
    action, or none for a rule without a target, which only counts. For a jump to a user chain, ``target`` is
    that chain's name; ``goto`` is true for ``-g``. ``unknown`` lists the parts of the rule that are not
    known: those that the input hides (``iptables -L`` without ``-v`` hides interfaces), and matches and
    targets that are not modelled. Translation refuses the rule for these reasons; the simulator follows both
    branches.
    """

    tests: tuple[Test, ...]
    actions: tuple[Action, ...]
    base: tuple[Option, ...] = ()
    matches: tuple[Spelled, ...] = ()
    target: Spelled | None = None
    goto: bool = False
    comment: str | None = None
    counters: Counters | None = None
    unknown: tuple[Unknown, ...] = ()
    origin: Origin = field(default=NOWHERE, compare=False)

    @property
    def callee(self) -> str | None:
        """The user chain that the rule jumps or goes to, or None."""
        action = self.actions[0] if self.actions else None
        return action.chain if isinstance(action, (Jump, Goto)) else None

    @property
    def is_undecided(self) -> bool:
        """Return whether the unknown parts of the rule may change where a packet goes.

        They cannot do so if the rule only counts or logs, and changes no list.
        """
        if not self.unknown:
            return False
        hides = {unknown.hides for unknown in self.unknown} - {Hidden.EFFECT}
        if hides != {Hidden.TESTS}:
            return bool(hides)
        does = any(not isinstance(action, SideEffect) for action in self.actions)
        return does or any(
            isinstance(test, Recent | SetUpdate | ConnLabel | ClusterShare) for test in self.tests
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A chain with its rules. ``hook`` and ``policy`` are None for a user chain."""

    name: str
    rules: tuple[Rule, ...]
    hook: Hook | None = None
    policy: Policy | None = None
    counters: Counters | None = None
    origin: Origin = field(default=NOWHERE, compare=False)

    @property
    def is_hidden(self) -> bool:
        """Return whether the input does not show the chain; its only rule then represents hidden rules."""
        if len(self.rules) != 1:
            return False
        rule = self.rules[0]
        return bool(rule.unknown) and not (rule.tests or rule.actions or rule.base or rule.matches)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table: its chains in the order in which they were declared.

    ``preamble`` holds the comment lines that stand before the table, as written.
    """

    name: TableName
    chains: tuple[Chain, ...]
    preamble: tuple[str, ...] = ()
    origin: Origin = field(default=NOWHERE, compare=False)
    _named: dict[str, Chain] = field(default_factory=dict, init=False, compare=False, repr=False)

    def chain(self, name: str) -> Chain | None:
        """Return the chain called ``name``, or None."""
        if not self._named:
            self._named.update((chain.name, chain) for chain in reversed(self.chains))
        return self._named.get(name)

    def rules(self) -> Iterator[Rule]:
        """Yield every rule, in the order of the chains."""
        for chain in self.chains:
            yield from chain.rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruleset:
    """All tables of one family, as read. ``source`` names the input; ``epilogue`` its last comments.

    ``unknown`` lists parts that the input does not show, for example the other tables; ``notes`` lists parts
    of the input that have no effect, for example a table that a later one replaces.
    ``sets`` are the ipsets that were given; a rule may name others.
    """

    family: Family
    tables: tuple[Table, ...]
    source: str = "<none>"
    epilogue: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    sets: tuple[IpSet, ...] = ()

    @property
    def sample(self) -> Ruleset:
        """The ruleset itself; see :class:`translate.ir.Rules`."""
        return self

    def whole(self) -> Ruleset:
        """Return the ruleset itself, which has every rule; see :class:`translate.ir.Rules`."""
        return self

    def noted(self, note: str) -> Ruleset:
        """Return the ruleset with one more note."""
        return replace(self, notes=(*self.notes, note))

    @property
    def is_empty(self) -> bool:
        """Return whether the ruleset has no table."""
        return not self.tables

    def table(self, name: TableName) -> Table | None:
        """Return the table called ``name``, or None."""
        for table in self.tables:
            if table.name is name:
                return table
        return None

    def rules(self) -> Iterator[Rule]:
        """Yield every rule, in the order of the tables and chains."""
        for table in self.tables:
            yield from table.rules()

    def unknowns(self) -> Iterator[tuple[Rule, Unknown]]:
        """Yield every rule with unknown parts, once for each reason."""
        for rule in self.rules():
            for unknown in rule.unknown:
                yield rule, unknown

    def set_uses(self) -> Iterator[tuple[Rule, SetTest | SetUpdate]]:
        """Yield every test and every change of an ipset, with its rule."""
        for rule in self.rules():
            for test in rule.tests:
                if isinstance(test, SetTest | SetUpdate):
                    yield rule, test

    def set_tests(self) -> Iterator[tuple[Rule, SetTest]]:
        """Yield every test of an ipset, with its rule."""
        return ((rule, test) for rule, test in self.set_uses() if isinstance(test, SetTest))

    def sets_not_given(self) -> Iterator[tuple[Rule, str]]:
        """Yield every rule that uses an ipset whose members were not given, with the set's name."""
        names_given = {ipset.name for ipset in self.sets}
        for rule, test in self.set_uses():
            if test.name not in names_given:
                yield rule, test.name
