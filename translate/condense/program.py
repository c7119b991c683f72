"""The Program of a condensed ruleset: that of its sample, and the entries of families in its lookups."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter

from translate.collector import collector_paused
from translate.condense.members import Member, RuleFamily
from translate.condense.ruleset import CondensedRuleset
from translate.dataclass import dataclass, replace
from translate.ir import (
    Action,
    Dnat,
    Entry,
    Family,
    Field,
    Interval,
    Lookup,
    LoweredChain,
    NatPorts,
    Origin,
    Program,
    Value,
    parse_address,
)

__all__ = ["CondensedProgram", "EntryBatch", "FamilyEntries", "LookupKey", "Recipe", "key_of"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The construction of one entry from a member.

    Its rule is line ``offset`` of ``part``. Each place of ``key`` has the index of a constant, or a value
    that is the same for all members. ``target`` is the index of the constant to which the entry translates;
    if it is None, all members have the same ``actions``.
    """

    part: int
    offset: int
    key: tuple[int | Value, ...]
    actions: tuple[Action, ...]
    target: int | None


@dataclass(frozen=True, slots=True)
class EntryBatch:
    """The entries of the members of one family in a lookup, for packets from one entrance.

    ``examples`` are the entries of one member of the sample, one for each recipe.
    """

    family: RuleFamily
    entrance: int
    recipes: tuple[Recipe, ...]
    examples: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class FamilyEntries:
    """All entries of a lookup, in the order of their rules: those made by members, and ``others``.

    A batch has the entries of one entrance of a family; each of ``others`` has the line of its rule.
    """

    batches: tuple[EntryBatch, ...]
    others: tuple[tuple[int, Entry], ...]


LookupKey = tuple[tuple[Field, ...], tuple[tuple[tuple[Value, ...], tuple[Action, ...], int], ...]]
"""The identity of a lookup in the sample's Program: fields, and key, actions and line of each entry."""


def key_of(lookup: Lookup) -> LookupKey:
    """Return the key of a lookup, which does not depend on its tests or its place in the Program."""
    entries = [(entry.key, entry.actions, entry.origin.line) for entry in lookup.entries]
    return lookup.fields, tuple(entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class CondensedProgram:
    """The lowered ``sample`` of ``ruleset``, and all entries of the lookups with entries of members."""

    ruleset: CondensedRuleset
    sample: Program
    entries: Mapping[LookupKey, FamilyEntries]

    @collector_paused()
    def whole(self) -> Program:
        """Return the Program that the same passes would make of the whole ruleset."""
        chains = tuple([self._whole(chain) for chain in self.sample.chains])
        return replace(self.sample, chains=chains)

    def _whole(self, chain: LoweredChain) -> LoweredChain:
        statements = []
        for statement in chain.statements:
            added = self.entries.get(key_of(statement)) if isinstance(statement, Lookup) else None
            if added is None:
                statements.append(statement)
            else:
                assert isinstance(statement, Lookup)
                entries = _entries(added, statement.fields, self.ruleset)
                statements.append(replace(statement, entries=entries))
        return replace(chain, statements=tuple(statements))


def _entries(
    source: FamilyEntries, fields: tuple[Field, ...], ruleset: CondensedRuleset
) -> tuple[Entry, ...]:
    entries_by_line = list(source.others)
    maker = _EntryMaker(ruleset.sample.family, fields)
    for batch in source.batches:
        for member in batch.family.members:
            for recipe in batch.recipes:
                origin = ruleset.origin(member.starts[recipe.part] + recipe.offset)
                entries_by_line.append((member.starts[batch.entrance], maker.entry(member, recipe, origin)))
    entries_by_line.sort(key=itemgetter(0))
    return tuple([entry for _, entry in entries_by_line])


class _EntryMaker:
    """Makes entries from members; the value of each spelling is parsed once."""

    def __init__(self, family: Family, fields: tuple[Field, ...]) -> None:
        self._family = family
        self._fields = fields
        self._values: dict[tuple[bool, str], Interval] = {}
        self._targets: dict[str, tuple[Action, ...]] = {}

    def entry(self, member: Member, recipe: Recipe, origin: Origin) -> Entry:
        constants = member.constants
        key = tuple(
            [
                self._value(field, constants[value]) if isinstance(value, int) else value
                for field, value in zip(self._fields, recipe.key, strict=True)
            ]
        )
        actions = recipe.actions if recipe.target is None else self._translated(constants[recipe.target])
        return Entry(key=key, actions=actions, origin=origin)

    def _value(self, field: Field, text: str) -> Interval:
        key = field.is_address, text
        value = self._values.get(key)
        if value is None:
            number = parse_address(self._family, text) if field.is_address else int(text)
            value = self._values[key] = Interval.point(number)
        return value

    def _translated(self, text: str) -> tuple[Action, ...]:
        """Return the DNAT to an address with a port."""
        actions = self._targets.get(text)
        if actions is None:
            address, _, port = text.rpartition(":")
            ports = NatPorts(interval=self._value(Field.DPORT, port))
            actions = (Dnat(self._value(Field.DADDR, address.strip("[]")), ports),)
            self._targets[text] = actions
        return actions
