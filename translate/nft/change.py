"""Two tables → the transaction that changes the first into the second, element by element.

The kernel must hold the first table as :func:`translate.nft.emit` wrote it. Otherwise the transaction is
refused as a whole (``delete element`` of a missing element), and nothing changes.

*The order of the commands.* nf_tables checks every command against the state after the commands before it. A
chain or a map can be deleted once nothing refers to it. An element can be added once the chain that it jumps
to exists. A key that gets other data must lose its old element first. So the order is: declare new counters,
limits, sets and chains; empty the chains that change or are deleted; delete elements, then maps, then chains;
declare new maps; add elements; add rules. A packet meets the tables either before or after the transaction.

*A map that outgrows its size* (:mod:`translate.nft.map_size`) is deleted and declared again under its name in
the same transaction; the chains that use it are emptied in between. A map that shrinks keeps its size. A map
that nft could not use in the new rules otherwise (:mod:`translate.nft.references`) is declared again, too.

Comments are not compared: an element that changed only in its line number stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from translate.dataclass import dataclass, replace
from translate.nft.elements import NftElement, element_text
from translate.nft.model import NftChain, NftMap, NftTable
from translate.nft.printer.logging import definitions
from translate.nft.references import uses, with_references
from translate.nft.render import (
    chain_head,
    map_head,
    object_kind,
    object_lines,
    rule_text,
    set_lines,
    structure_text,
)

__all__ = ["ChangeKind", "NftChange", "change"]


class ChangeKind(StrEnum):
    """The extent of a change."""

    NOTHING = "nothing"
    """No command is needed."""

    ELEMENTS = "elements"
    """Only elements of existing maps and sets."""

    STRUCTURE = "structure"
    """Also chains, rules or maps; sets that packets fill keep their elements."""

    REPLACEMENT = "replacement"
    """The whole table, in one transaction; sets that packets fill lose their elements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NftChange:
    """A transaction as nft text, empty if the tables are equal, and its extent.

    ``added`` and ``deleted`` count elements of maps and sets that stay.
    """

    kind: ChangeKind
    text: str
    added: int = 0
    deleted: int = 0


def change(old: NftTable, new: NftTable) -> NftChange:
    """Return the change from ``old`` to ``new`` in the kernel.

    The whole table is replaced if a map or set keeps its name and gets another type, or a base chain gets
    another hook, priority or policy.
    """
    if not _can_change(old, new):
        return NftChange(kind=ChangeKind.REPLACEMENT, text=structure_text(new))
    work = _Change(old, new)
    structure = [*work.declared(), *work.emptied()]
    deleted = list(work.deleted_elements())
    removed = [*work.removed(), *work.maps()]
    added = list(work.added_elements())
    rules = list(work.rules())
    lines = [*work.definitions(), *structure, *deleted, *removed, *added, *rules]
    kind = (
        ChangeKind.STRUCTURE
        if structure or removed or rules
        else ChangeKind.ELEMENTS
        if deleted or added
        else ChangeKind.NOTHING
    )
    text = "".join(f"{line}\n" for line in lines)
    return NftChange(kind=kind, text=text, added=work.added, deleted=work.deleted)


def _can_change(old: NftTable, new: NftTable) -> bool:
    if (old.family, old.name) != (new.family, new.name):
        raise ValueError(f"{old.family} {old.name} and {new.family} {new.name} are different tables")
    old_attributes, new_attributes = _types(old), _types(new)
    return all(new_attributes.get(name, type_) == type_ for name, type_ in old_attributes.items())


def _types(table: NftTable) -> dict[tuple[str, str], object]:
    """Return the attributes that nf_tables cannot change, by kind and name of the object.

    Sets and maps share their names.
    """
    types: dict[tuple[str, str], object] = {("set", s.name): replace(s, note="") for s in table.sets}
    types |= {(object_kind(o), o.name): replace(o, note="") for o in table.objects}
    types |= {("set", m.name): (m.key, m.data, m.interval) for m in table.maps}
    return types | {("chain", c.name): c.base for c in table.chains}


class _Change:
    """The parts of one transaction; ``added`` and ``deleted`` count elements of maps that stay."""

    def __init__(self, old: NftTable, new: NftTable) -> None:
        self.where = f"{new.family} {new.name}"
        self.old, self.new = old, new
        self.new_maps = {m.name: m for m in new.maps}
        self.old_chains = {c.name: c for c in old.chains}
        self.new_chains = {c.name: c for c in new.chains}
        self.old_sets = {s.name for s in old.sets}
        self.new_sets = {s.name for s in new.sets}
        self.old_objects = {(object_kind(o), o.name) for o in old.objects}
        self.new_objects = {(object_kind(o), o.name) for o in new.objects}
        removed = {m.name for m in old.maps if m.name not in self.new_maps or self._outgrown(m)}
        changed = {
            c.name
            for c in new.chains
            if c.name not in self.old_chains
            or _rules(c) != _rules(self.old_chains[c.name])
            or not uses(c).isdisjoint(removed)
        }
        names, again = with_references(new, changed, removed)
        self.changed = [c for c in new.chains if c.name in names]
        self.removed_maps = [m for m in old.maps if m.name in again]
        self.kept_maps = {m.name: m for m in old.maps if m.name not in again}
        kept = [(self.kept_maps[m.name], m) for m in new.maps if m.name in self.kept_maps]
        self.elements = [
            (m, *_difference(was.elements.listed(), m.elements.listed()))
            for was, m in kept
            if was.elements != m.elements
        ]
        self.added = sum(len(added) for _, _, added in self.elements)
        self.deleted = sum(len(deleted) for _, deleted, _ in self.elements)

    def _outgrown(self, map_: NftMap) -> bool:
        return (self.new_maps[map_.name].size or 0) > (map_.size or 0)

    def declared(self) -> Iterator[str]:
        """Yield the declarations of new counters, limits and sets, and of new chains without their rules."""
        blocks: list[Sequence[str]] = []
        blocks += [
            tuple(object_lines(o))
            for o in self.new.objects
            if (object_kind(o), o.name) not in self.old_objects
        ]
        blocks += [tuple(set_lines(s)) for s in self.new.sets if s.name not in self.old_sets]
        blocks += [(*chain_head(c), "}") for c in self.new.chains if c.name not in self.old_chains]
        yield from self._table(blocks)

    def maps(self) -> Iterator[str]:
        """Yield the declarations of new maps, without their elements."""
        yield from self._table([(*map_head(m), "}") for m in self.new.maps if m.name not in self.kept_maps])

    def _table(self, blocks: Sequence[Sequence[str]]) -> Iterator[str]:
        if blocks:
            yield f"table {self.where} {{"
            for block in blocks:
                yield from (f"\t{line}" for line in block)
            yield "}"

    def emptied(self) -> Iterator[str]:
        """Yield the commands that empty chains before they change or are deleted."""
        for chain in self.changed:
            if chain.name in self.old_chains and self.old_chains[chain.name].rules:
                yield f"flush chain {self.where} {chain.name}"
        for name in self.old_chains:
            if name not in self.new_chains:
                yield f"flush chain {self.where} {name}"

    def deleted_elements(self) -> Iterator[str]:
        """Yield the commands that delete elements, also those that get other data."""
        for map_, deleted, _ in self.elements:
            if deleted:
                yield f"delete element {self.where} {map_.name} {{ {', '.join(e.key for e in deleted)} }}"

    def removed(self) -> Iterator[str]:
        """Yield the commands that delete counters, limits, maps and sets, and then chains."""
        for kind, name in sorted(self.old_objects - self.new_objects):
            yield f"delete {kind} {self.where} {name}"
        for map_ in self.removed_maps:
            yield f"delete {'set' if map_.data is None else 'map'} {self.where} {map_.name}"
        for set_ in self.old.sets:
            if set_.name not in self.new_sets:
                yield f"delete set {self.where} {set_.name}"
        for name in self.old_chains:
            if name not in self.new_chains:
                yield f"delete chain {self.where} {name}"

    def added_elements(self) -> Iterator[str]:
        """Yield the commands that add elements: new ones, those with other data, and those of new maps."""
        for map_, _, added in self.elements:
            yield from self._add(map_, added)
        for map_ in self.new.maps:
            if map_.name not in self.kept_maps:
                yield from self._add(map_, map_.elements.listed())

    def _add(self, map_: NftMap, elements: Sequence[NftElement]) -> Iterator[str]:
        if elements:
            yield f"add element {self.where} {map_.name} {{ {', '.join(map(element_text, elements))} }}"

    def definitions(self) -> Iterator[str]:
        """Yield the definitions of the variables in the rules that are added."""
        yield from definitions(part for chain in self.changed for rule in chain.rules for part in rule.parts)

    def rules(self) -> Iterator[str]:
        """Yield the commands that add the rules of chains that are new or change."""
        for chain in self.changed:
            for rule in chain.rules:
                yield f"add rule {self.where} {chain.name} {rule_text(rule)}"


def _rules(chain: NftChain) -> list[tuple[str, ...]]:
    return [rule.parts for rule in chain.rules]


def _difference(
    old: Iterable[NftElement], new: Iterable[NftElement]
) -> tuple[list[NftElement], list[NftElement]]:
    """Return the elements to delete and those to add; an element that gets other data is in both."""
    old_data = {e.key: e.data for e in old}
    by_key = {e.key: e for e in new}
    deleted = [e for e in old if e.key not in by_key or by_key[e.key].data != e.data]
    added = [e for e in by_key.values() if e.key not in old_data or old_data[e.key] != e.data]
    return deleted, added
