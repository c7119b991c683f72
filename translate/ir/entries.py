"""The entries of a lookup that come from members of families, made when somebody looks at them.

Tens of thousands of entries differ in a few constants. :class:`MemberEntries` says so, for an emitter that
writes them without a node for each; to everybody else it is the sequence of the entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Final, overload

from translate.ir.actions import Action, Dnat, NatPorts
from translate.ir.families import Families, Member, RuleFamily
from translate.ir.family import Family, parse_address
from translate.ir.fields import Field
from translate.ir.origin import Origin
from translate.ir.values import Interval, Value

if TYPE_CHECKING:
    from translate.ir.program import Entry

__all__ = ["Batch", "MemberEntries", "Recipe"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one entry is made of a member.

    Its rule is that ``offset`` lines into ``part``. ``key`` holds the number of a constant, or a value that
    is the same for all. ``target`` is the number of the constant that ``actions`` translate to, if they do.
    """

    part: int
    offset: int
    key: tuple[int | Value, ...]
    actions: tuple[Action, ...]
    target: int | None


@dataclass(frozen=True, slots=True)
class Batch:
    """The entries that members of one family have in a lookup, for packets that came by one entrance.

    ``examples`` are the entries of one of them.
    """

    family: RuleFamily
    entrance: int
    recipes: tuple[Recipe, ...]
    examples: tuple[Entry, ...]


class MemberEntries(Sequence["Entry"]):
    """The entries of all members, and ``others``, in the order of the rules that lead to them.

    ``sample`` are those entries that the sample has: an emitter learns from them what all have in common,
    and what differs in any two differs in two of these. The numbers with ``others`` are lines.
    """

    def __init__(
        self,
        families: Families,
        fields: tuple[Field, ...],
        batches: tuple[Batch, ...],
        others: tuple[tuple[int, Entry], ...],
        sample: Sequence[Entry],
    ) -> None:
        self.batches: Final = batches
        self.others: Final = others
        self.sample: Final = sample
        self._families = families
        self._fields = fields

    def __len__(self) -> int:
        return len(self.others) + sum(len(b.recipes) * len(b.family.members) for b in self.batches)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    @overload
    def __getitem__(self, index: int) -> Entry: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Entry, ...]: ...

    def __getitem__(self, index: int | slice) -> Entry | tuple[Entry, ...]:
        return self._entries[index]

    def __eq__(self, other: object) -> bool:
        return self._entries == (other._entries if isinstance(other, MemberEntries) else other)

    def __hash__(self) -> int:
        return hash(self._entries)

    def __repr__(self) -> str:
        return repr(self._entries)

    def rows(self) -> list[tuple[int, int, Member | Entry]]:
        """Return what entries are made of, in order: the line, the number of the batch, and the member.

        Another entry stands there itself, and -1 for its batch.
        """
        found: list[tuple[int, int, Member | Entry]] = [(line, -1, entry) for line, entry in self.others]
        for number, batch in enumerate(self.batches):
            entrance = batch.entrance
            found += [(member.starts[entrance], number, member) for member in batch.family.members]
        found.sort(key=itemgetter(0))
        return found

    def origin(self, number: int) -> Origin:
        """Return the place of a rule, given its line."""
        return Origin(self._families.sample.source, number, 1, self._families.line(number))

    @cached_property
    def _entries(self) -> tuple[Entry, ...]:
        entries: list[Entry] = []
        make = _Maker(self._families.sample.family, self._fields)
        for _, number, source in self.rows():
            if isinstance(source, Member):
                entries += [
                    make.entry(source, recipe, self.origin(source.starts[recipe.part] + recipe.offset))
                    for recipe in self.batches[number].recipes
                ]
            else:
                entries.append(source)
        return tuple(entries)


class _Maker:
    """Makes entries; what a constant means is worked out once."""

    def __init__(self, family: Family, fields: tuple[Field, ...]) -> None:
        self._family = family
        self._fields = fields
        self._values: dict[tuple[bool, str], Interval] = {}
        self._targets: dict[str, tuple[Action, ...]] = {}

    def entry(self, member: Member, recipe: Recipe, origin: Origin) -> Entry:
        from translate.ir.program import Entry

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
        found = self._values.get(key)
        if found is None:
            number = parse_address(self._family, text) if field.is_address else int(text)
            found = self._values[key] = Interval.point(number)
        return found

    def _translated(self, text: str) -> tuple[Action, ...]:
        """Return the DNAT to an address with a port."""
        found = self._targets.get(text)
        if found is None:
            address, _, port = text.rpartition(":")
            ports = NatPorts(interval=self._value(Field.DPORT, port))
            found = (Dnat(self._value(Field.DADDR, address.strip("[]")), ports),)
            self._targets[text] = found
        return found
