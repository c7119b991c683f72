"""``expand``: what became of some members of each family becomes what becomes of all.

*Before*: the lowered Program of a sample (:class:`~translate.ir.Families`), with every pass of a level
behind it.

*After*: the Program that the same passes make of the whole ruleset, or None where the sample does not
show it.

*Why the meaning is preserved*: the members of a family are the same but for constants, and
``translate.read.families`` says why no pass can tell them apart in more than these. So an entry of a lookup
that comes from a member's rule is, for each member, the entry with that member's constants in the
places of the other's; its place among the entries is that of the rule that led to it. What is here is
checked on every member that the sample shows:

* all that is left of a member's own rules are entries of lookups, or what all members have in common and
  is written once, for the first;
* the entries of all of them are the same, with constants in the same places;
* lookups that lead to members come in the same order by size, which is how ``template`` takes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from translate.ir import (
    Action,
    Batch,
    Dnat,
    Entry,
    Families,
    Family,
    Field,
    Interval,
    Lookup,
    LoweredChain,
    MemberEntries,
    NatPorts,
    Program,
    Recipe,
    RuleFamily,
    Statement,
    Value,
    format_address,
    qualified,
)
from translate.passes.calls import called, callee
from translate.passes.structural_sharing import holding

__all__ = ["expand"]

_Tree = tuple[int, int]
"""A family, and the entrance by which a packet came to its member."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a line of the sample stands: in which family, member, and part, and how far in it."""

    family: int
    member: int
    part: int
    offset: int


def expand(program: Program, families: Families) -> Program | None:
    """Return the Program of the whole ruleset, given that of its sample; None where that cannot be told."""
    try:
        return _Expansion(program, families).run()
    except _NotShownError:
        return None


class _NotShownError(Exception):
    """The sample does not show what becomes of the whole."""


@dataclass(frozen=True, slots=True)
class _Way:
    """The lookup that leads to a chain: its fields, and the line of the rule that each key comes from."""

    fields: tuple[Field, ...]
    lines: Mapping[tuple[Value, ...], int]


class _Expansion:
    def __init__(self, program: Program, families: Families) -> None:
        self.program = program
        self.source = families
        self.families = families.families
        self.places = dict(_places(families.families))
        self.numbers = [_numbers(family) for family in families.families]
        sample = families.sample
        self.written = {qualified(t.name, chain.name): chain for t in sample.tables for chain in t.chains}

    def run(self) -> Program:
        """Return the Program of the whole. Raises _NotShownError."""
        ways = self._ways()
        chains = []
        sizes: list[tuple[int, int]] = []
        for chain in self.program.chains:
            statements: list[Statement] = []
            for statement in chain.statements:
                whole = statement
                if isinstance(statement, Lookup):
                    whole = self._whole(statement, chain, ways.get(chain.name))
                    if chain.name in self.written and _leading(whole) > 1:
                        sizes.append((_leading(statement), _leading(whole)))
                elif chain.name in self.written and statement.origin.line in self.places:
                    raise _NotShownError  # a rule of one member, as it was
                statements.append(whole)
            chains.append(holding(chain, statements))
        if _order([size for size, _ in sizes]) != _order([size for _, size in sizes]):
            raise _NotShownError
        return replace(self.program, chains=tuple(chains))

    def _ways(self) -> dict[str, _Way]:
        """Return, for each chain that a template made, the lookup that leads to it."""
        chains = {chain.name: chain for chain in self.program.chains}
        ways: dict[str, _Way] = {}
        for chain in self.program.chains:
            for statement in chain.statements if chain.name in self.written else ():
                if not isinstance(statement, Lookup):
                    continue
                way = _Way(statement.fields, {entry.key: entry.origin.line for entry in statement.entries})
                todo = {name for entry in statement.entries if (name := callee(entry.actions)) is not None}
                while todo:
                    name = todo.pop()
                    if name not in self.written and ways.setdefault(name, way) is not way:
                        raise _NotShownError
                    todo.update(n for n in called(chains[name]) if n not in self.written and n not in ways)
        return ways

    def _whole(self, lookup: Lookup, chain: LoweredChain, way: _Way | None) -> Lookup:
        """Return the lookup with the entries of all members."""
        if chain.name not in self.written and (way is None or not set(way.fields) <= set(lookup.fields)):
            return lookup  # what all members have in common
        if all(entry.origin.line not in self.places for entry in lookup.entries):
            return lookup
        at = () if way is None else tuple([lookup.fields.index(f) for f in way.fields])
        found: dict[_Tree, dict[int, list[tuple[Recipe, Entry]]]] = {}
        others: list[tuple[int, Entry]] = []
        for entry in lookup.entries:
            line = entry.origin.line
            own = self.places.get(line)
            if way is not None:
                line = way.lines.get(tuple([entry.key[i] for i in at]), 0)
            came = self.places.get(line)
            if not line:
                raise _NotShownError
            if came is None and own is None:
                others.append((line, entry))
            elif came is None or own is None or (came.family, came.member) != (own.family, own.member):
                raise _NotShownError
            else:
                members = found.setdefault((came.family, came.part), {})
                members.setdefault(came.member, []).append((self._recipe(lookup, entry, own), entry))
        if not found:
            return lookup
        batches = []
        for (number, entrance), members in found.items():
            family = self.families[number]
            recipes, *same = [[recipe for recipe, _ in made] for made in members.values()]
            if len(members) != len(family.shown) or any(other != recipes for other in same):
                raise _NotShownError
            examples = tuple(entry for _, entry in next(iter(members.values())))
            batches.append(Batch(family, entrance, tuple(recipes), examples))
        entries = MemberEntries(self.source, lookup.fields, tuple(batches), tuple(others), lookup.entries)
        return replace(lookup, entries=entries)

    def _recipe(self, lookup: Lookup, entry: Entry, place: _Place) -> Recipe:
        """Return how the entry is made of the member at ``place``."""
        numbers = self.numbers[place.family][place.member]
        key = tuple(
            numbers.get((field, _text(self.program.family, field, value)), value)
            for field, value in zip(lookup.fields, entry.key, strict=True)
        )
        target = numbers.get((None, _target_text(self.program.family, entry.actions)))
        actions = entry.actions if target is None else ()
        return Recipe(place.part, place.offset, key, actions, target)


def _places(families: Sequence[RuleFamily]) -> Iterator[tuple[int, _Place]]:
    """Yield where each line of a member in the sample stands."""
    for number, family in enumerate(families):
        for shown in family.shown:
            starts = family.members[shown].starts
            for part, (start, length) in enumerate(zip(starts, family.lengths, strict=True)):
                for offset in range(length):
                    yield start + offset, _Place(number, shown, part, offset)


def _numbers(family: RuleFamily) -> dict[int, dict[tuple[Field | None, str], int]]:
    """Return, for each member in the sample, the number of each constant by what is compared with it."""
    found: dict[int, dict[tuple[Field | None, str], int]] = {}
    for shown in family.shown:
        numbers = found[shown] = {}
        for number, constant in enumerate(zip(family.fields, family.members[shown].constants, strict=True)):
            numbers.setdefault(constant, number)
    return found


def _leading(lookup: Lookup) -> int:
    """Return how many entries lead to a chain: by that ``template`` chooses the lookup to begin with."""
    if isinstance(lookup.entries, MemberEntries):
        counted = [(len(b.family.members), entry) for b in lookup.entries.batches for entry in b.examples]
        counted += [(1, entry) for _, entry in lookup.entries.others]
    else:
        counted = [(1, entry) for entry in lookup.entries]
    return sum(count for count, entry in counted if callee(entry.actions) is not None)


def _order(sizes: Sequence[int]) -> list[int]:
    return sorted(range(len(sizes)), key=lambda i: -sizes[i])


def _text(family: Family, field: Field, value: Value) -> str:
    """Return how a value is spelled as a constant; empty when it is none."""
    if not isinstance(value, Interval) or not value.is_point:
        return ""
    return format_address(family, value.low) if field.is_address else str(value.low)


def _target_text(family: Family, actions: tuple[Action, ...]) -> str:
    """Return how the target of a DNAT is spelled as a constant; empty when it is none."""
    match actions:
        case (Dnat(addresses=Interval() as addresses, ports=NatPorts(interval=Interval() as port)),):
            address = _text(family, Field.DADDR, addresses)
            host = f"[{address}]" if family is Family.IP6 else address
            return f"{host}:{_text(family, Field.DPORT, port)}"
        case _:
            return ""
