"""ipsets as maps of the tc program, one map each.

A set is a hash, or with nets a trie in which the other parts of the key come before the net, so that the
element with the longest prefix matches (``mtype_test_cidrs`` of ``ip_set_hash_gen.h``). The value is 1 for a
member and 0 for an element with ``nomatch``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from translate.bpf.chains.code import Condition, Declaration, Needs
from translate.bpf.layout.maps import SetContents, SetEntry, max_entries_for
from translate.bpf.layout.structures import Declarator, Structure
from translate.bpf.layout.tables import U32, RuntimePart
from translate.ir import Cell, Family, Interval, IpSet, SetDirection, SetElement, SetTest, SetType

__all__ = ["SetMap", "set_maps"]


@dataclass(frozen=True, slots=True)
class SetMap:
    """An ipset with its map and the map's declaration."""

    ipset: IpSet
    contents: SetContents
    declaration: Declaration

    def condition(self, test: SetTest, family: Family) -> Condition:
        """Return the condition that the set contains the key of ``test``."""
        sides = tuple(side.value for side in test.directions)
        name = "_".join((f"{'not_' if test.nomatch else ''}in_{self.contents.name}", *sides))
        needs = Needs(
            parts=frozenset({RuntimePart.IPSET}),
            declarations=(self.declaration, _function(name, self, test, family)),
            sets=(self.contents,),
        )
        return Condition(f"{'!' if test.negated else ''}{name}(p)", needs)


def set_maps(names: Iterable[str], ipsets: Mapping[str, IpSet], family: Family) -> dict[str, SetMap]:
    """Return the maps of these sets, numbered in the order of ``names``."""
    return {name: _map(number, ipsets[name], family) for number, name in enumerate(dict.fromkeys(names))}


def _map(number: int, ipset: IpSet, family: Family) -> SetMap:
    name = f"set_{number}_{re.sub(r'[^A-Za-z0-9]', '_', ipset.name)}"
    tree = Cell.NET in ipset.type.cells
    order = _key_order(ipset)
    cells = [ipset.type.cells[at] for at in order]
    words = sum(_words(cell, family) for cell in cells)
    length = (Declarator(U32, "length"),) if tree else ()
    contents = SetContents(
        name=name,
        fields=tuple(cell.value for cell in cells),
        key=Structure(f"{name}_key", (*length, Declarator(U32, "word", words))),
        entries=tuple(_entry(element, order, cells, family) for element in ipset.elements),
        trie=tree,
        max_entries=max_entries_for(len(ipset.elements)),
        origin=ipset.origin,
    )
    declaration = Declaration.of_map(contents.declared, f"ipset {_safe(ipset.name)} {ipset.type}")
    return SetMap(ipset, contents, declaration)


def _words(cell: Cell, family: Family) -> int:
    return family.bits // 32 if cell in (Cell.ADDRESS, Cell.NET) else 1


def _entry(element: SetElement, order: list[int], cells: list[Cell], family: Family) -> SetEntry:
    words: list[int] = []
    length = 0
    for at, cell in zip(order, cells, strict=True):
        interval = element.key[at]
        words += _split(interval.low, _words(cell, family))
        length += 32 * _words(cell, family) if cell is not Cell.NET else _prefix(interval, family)
    return SetEntry(words=tuple(words), length=length, member=not element.nomatch, origin=element.origin)


def _function(name: str, set_map: SetMap, test: SetTest, family: Family) -> Declaration:
    """Return the function that looks up a packet in a set, by the directions of the test."""
    kind, contents = set_map.ipset.type, set_map.contents
    values: list[str] = []
    guards: list[str] = []
    sides = [side for side, cells in zip(test.directions, kind.dimensions, strict=True) for _ in cells]
    for at in _key_order(set_map.ipset):
        src = sides[at] is SetDirection.SRC
        match kind.cells[at]:
            case Cell.ADDRESS | Cell.NET as cell:
                address = f"p->{'saddr' if src else 'daddr'}"
                values += [
                    f"(u32)({address} >> {32 * n})" if n else f"(u32){address}"
                    for n in range(_words(cell, family) - 1, -1, -1)
                ]
            case Cell.PROTOCOL:
                values.append("p->proto")
            case Cell.PORT:
                values.append("(u32)port")
                guards += [f"\tint port = ipset_port(p, {int(src)});", ""]
    if kind is SetType.BITMAP_PORT:
        guards += ["\tif (p->proto != PROTO_TCP && p->proto != PROTO_UDP)", "\t\treturn 0;"]
    if guards:
        guards += ["\tif (port < 0)", "\t\treturn 0;"]
    if contents.trie:
        values = [f"bpf_htonl({value})" for value in values]
    return Declaration(
        (
            f"INLINE int {name}(struct pkt *p)",
            "{",
            f"\t{contents.key.text} key = {{}};",
            "\tu32 *found;",
            *guards,
            *(["\tkey.length = 8 * sizeof(key.word);"] if contents.trie else []),
            *(f"\tkey.word[{i}] = {value};" for i, value in enumerate(values)),
            f"\tfound = {contents.name}.lookup(&key);",
            f"\treturn found && {'!' if test.nomatch else ''}*found;",
            "}",
            "",
        )
    )


def _key_order(ipset: IpSet) -> list[int]:
    """Return the order of a key's cells: a network comes last, because a trie compares from the front."""
    cells = ipset.type.cells
    return sorted(range(len(cells)), key=lambda at: cells[at] is Cell.NET)


def _split(value: int, words: int) -> list[int]:
    """Return a number as words of 32 bits, the most significant word first."""
    return [value >> 32 * n & 0xFFFFFFFF for n in range(words - 1, -1, -1)]


def _prefix(interval: Interval, family: Family) -> int:
    length = interval.prefix_length(family.bits)
    assert length is not None
    return length


def _safe(text: str) -> str:
    return re.sub(r"[^ -~]", "?", text).replace("*/", "* /")
