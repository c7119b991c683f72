"""Extend the lowered sample to all members of each family.

*Before*: the Program of the sample of a :class:`~translate.condense.ruleset.CondensedRuleset`, after the last
pass.

*After*: for each lookup, the entries that the same passes would make for all members; or None if the sample
does not determine them.

*Why the meaning is preserved*: by the premise of the package's docstring, every entry that comes from a rule
of one member exists for each other member, too, with that member's constants in the same places. Its place
among the entries is the place of the rule that calls the member. These conditions are checked on every member
of the sample:

* a member's own rules have become entries of lookups, or statements that all members share and that are
  written once, for the first member;
* the entries of all members are the same, with constants in the same places;
* lookups that call members are in the same order by size, because ``template`` processes them in that order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from translate.condense.members import RuleFamily
from translate.condense.program import CondensedProgram, EntryBatch, FamilyEntries, LookupKey, Recipe, key_of
from translate.condense.ruleset import CondensedRuleset
from translate.dataclass import dataclass
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
    Program,
    Value,
    format_address,
    qualified,
)
from translate.passes.calls import called, callee

__all__ = ["expand"]

_Tree = tuple[int, int]
"""A family, and the entrance through which a packet reached its member."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a line of the sample: its family, member and part, and its offset in the part."""

    family: int
    member: int
    part: int
    offset: int


def expand(program: Program, ruleset: CondensedRuleset) -> CondensedProgram | None:
    """Return the Program of the whole ruleset, given that of its sample; None if the sample is not enough."""
    try:
        entries = _Expansion(program, ruleset).run()
    except _NotShownError:
        return None
    return CondensedProgram(ruleset=ruleset, sample=program, entries=entries)


class _NotShownError(Exception):
    """The result for the sample does not determine the result for the whole ruleset."""


@dataclass(frozen=True, slots=True)
class _CallingLookup:
    """The lookup that calls a chain: its fields, and the line of the rule that each key comes from."""

    fields: tuple[Field, ...]
    lines: Mapping[tuple[Value, ...], int]


class _Expansion:
    def __init__(self, program: Program, ruleset: CondensedRuleset) -> None:
        self.program = program
        self.families = ruleset.families
        self.places = dict(_places(ruleset.families))
        self.numbers = [_numbers(family) for family in ruleset.families]
        sample = ruleset.sample
        self.written = {qualified(t.name, chain.name) for t in sample.tables for chain in t.chains}

    def run(self) -> dict[LookupKey, FamilyEntries]:
        """Return the entries of the lookups with entries of members. Raises _NotShownError."""
        calling_lookups = self._calling_lookups()
        by_key: dict[LookupKey, FamilyEntries | None] = {}
        sizes: list[tuple[int, int]] = []
        for chain in self.program.chains:
            for statement in chain.statements:
                if isinstance(statement, Lookup):
                    entries = self._entries(statement, chain, calling_lookups.get(chain.name))
                    if by_key.setdefault(key_of(statement), entries) != entries:
                        raise _NotShownError  # different entries for one key
                    size = _leading(statement, entries)
                    if chain.name in self.written and size > 1:
                        sizes.append((_leading(statement, None), size))
                elif chain.name in self.written and statement.origin.line in self.places:
                    raise _NotShownError  # a member's rule that is in no lookup
        if _order([size for size, _ in sizes]) != _order([size for _, size in sizes]):
            raise _NotShownError
        return {key: entries for key, entries in by_key.items() if entries is not None}

    def _calling_lookups(self) -> dict[str, _CallingLookup]:
        """Return the lookup that calls each chain made by ``template``, by the name of the chain."""
        chains = {chain.name: chain for chain in self.program.chains}
        calling_lookups: dict[str, _CallingLookup] = {}
        for chain in self.program.chains:
            for statement in chain.statements if chain.name in self.written else ():
                if not isinstance(statement, Lookup):
                    continue
                calling_lookup = _CallingLookup(
                    statement.fields, {entry.key: entry.origin.line for entry in statement.entries}
                )
                todo = {name for entry in statement.entries if (name := callee(entry.actions)) is not None}
                while todo:
                    name = todo.pop()
                    if (
                        name not in self.written
                        and calling_lookups.setdefault(name, calling_lookup) is not calling_lookup
                    ):
                        raise _NotShownError
                    todo.update(
                        n for n in called(chains[name]) if n not in self.written and n not in calling_lookups
                    )
        return calling_lookups

    def _entries(
        self, lookup: Lookup, chain: LoweredChain, calling_lookup: _CallingLookup | None
    ) -> FamilyEntries | None:
        """Return the entries of all members; None for a lookup that is the same in the whole ruleset."""
        if chain.name not in self.written and (
            calling_lookup is None or not set(calling_lookup.fields) <= set(lookup.fields)
        ):
            return None  # common to all members
        if all(entry.origin.line not in self.places for entry in lookup.entries):
            return None
        at = () if calling_lookup is None else tuple([lookup.fields.index(f) for f in calling_lookup.fields])
        by_tree: dict[_Tree, dict[int, list[tuple[Recipe, Entry]]]] = {}
        others: list[tuple[int, Entry]] = []
        for entry in lookup.entries:
            line = entry.origin.line
            own = self.places.get(line)
            if calling_lookup is not None:
                line = calling_lookup.lines.get(tuple([entry.key[i] for i in at]), 0)
            came = self.places.get(line)
            if not line:
                raise _NotShownError
            if came is None and own is None:
                others.append((line, entry))
            elif came is None or own is None or (came.family, came.member) != (own.family, own.member):
                raise _NotShownError
            else:
                members = by_tree.setdefault((came.family, came.part), {})
                members.setdefault(came.member, []).append((self._recipe(lookup, entry, own), entry))
        if not by_tree:
            return None
        batches = []
        for (number, entrance), members in by_tree.items():
            family = self.families[number]
            recipes, *same = [[recipe for recipe, _ in pairs] for pairs in members.values()]
            if len(members) != len(family.shown) or any(other != recipes for other in same):
                raise _NotShownError
            examples = tuple(entry for _, entry in next(iter(members.values())))
            batches.append(EntryBatch(family, entrance, tuple(recipes), examples))
        return FamilyEntries(tuple(batches), tuple(others))

    def _recipe(self, lookup: Lookup, entry: Entry, place: _Place) -> Recipe:
        """Return the recipe that makes the entry from the member at ``place``."""
        numbers = self.numbers[place.family][place.member]
        key = tuple(
            numbers.get((field, _text(self.program.family, field, value)), value)
            for field, value in zip(lookup.fields, entry.key, strict=True)
        )
        target = numbers.get((None, _target_text(self.program.family, entry.actions)))
        actions = entry.actions if target is None else ()
        return Recipe(place.part, place.offset, key, actions, target)


def _places(families: Sequence[RuleFamily]) -> Iterator[tuple[int, _Place]]:
    """Yield the place of each line of a member in the sample."""
    for number, family in enumerate(families):
        for index in family.shown:
            starts = family.members[index].starts
            for part, (start, length) in enumerate(zip(starts, family.lengths, strict=True)):
                for offset in range(length):
                    yield start + offset, _Place(number, index, part, offset)


def _numbers(family: RuleFamily) -> dict[int, dict[tuple[Field | None, str], int]]:
    """Return the numbers of constants by their values, for each member in the sample."""
    by_member: dict[int, dict[tuple[Field | None, str], int]] = {}
    for index in family.shown:
        numbers = by_member[index] = {}
        for number, constant in enumerate(zip(family.fields, family.members[index].constants, strict=True)):
            numbers.setdefault(constant, number)
    return by_member


def _leading(lookup: Lookup, added: FamilyEntries | None) -> int:
    """Return the number of entries that call a chain, by which ``template`` chooses its first lookup."""
    if added is None:
        counted = [(1, entry) for entry in lookup.entries]
    else:
        counted = [(len(b.family.members), entry) for b in added.batches for entry in b.examples]
        counted += [(1, entry) for _, entry in added.others]
    return sum(count for count, entry in counted if callee(entry.actions) is not None)


def _order(sizes: Sequence[int]) -> list[int]:
    return sorted(range(len(sizes)), key=lambda i: -sizes[i])


def _text(family: Family, field: Field, value: Value) -> str:
    """Return the spelling of a value as a constant, or an empty string."""
    if not isinstance(value, Interval) or not value.is_point:
        return ""
    return format_address(family, value.low) if field.is_address else str(value.low)


def _target_text(family: Family, actions: tuple[Action, ...]) -> str:
    """Return the spelling of a DNAT target as a constant, or an empty string."""
    match actions:
        case (Dnat(addresses=Interval() as addresses, ports=NatPorts(interval=Interval() as port)),):
            address = _text(family, Field.DADDR, addresses)
            host = f"[{address}]" if family is Family.IP6 else address
            return f"{host}:{_text(family, Field.DPORT, port)}"
        case _:
            return ""
