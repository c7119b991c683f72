"""ipsets as maps of the tc program, one each, that every rule asks by name.

A set is a hash; one with nets is a trie in which the other parts of the key stand before the net, so
that the element with the longest prefix answers (``mtype_test_cidrs`` of ``ip_set_hash_gen.h``). The value
says whether the packet is in the set: 0 for ``nomatch``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from translate.bpf.maps import SetContents, SetEntry, room_for
from translate.ir import Cell, Family, Interval, IpSet, SetDirection, SetElement, SetTest, SetType

__all__ = ["SetMaps"]


@dataclass(slots=True)
class SetMaps:
    """The maps of the sets that rules ask, and the functions that ask them."""

    given: Mapping[str, IpSet]
    family: Family
    maps: dict[str, SetContents] = field(default_factory=dict)
    declarations: list[str] = field(default_factory=list)
    _functions: dict[tuple[str, tuple[SetDirection, ...]], str] = field(default_factory=dict)

    def condition(self, test: SetTest) -> str:
        """Return the C condition that asks a set."""
        key = test.name, test.directions
        if key not in self._functions:
            self._functions[key] = self._function(test)
        return f"{'!' if test.negated else ''}{self._functions[key]}(p)"

    def _map(self, known: IpSet) -> SetContents:
        made = self.maps.get(known.name)
        if made is not None:
            return made
        number = len(self.maps)
        name = f"set_{number}_{re.sub(r'[^A-Za-z0-9]', '_', known.name)}"
        tree = Cell.NET in known.type.cells
        order = _key_order(known)
        cells = [known.type.cells[at] for at in order]
        words = sum(self._words(cell) for cell in cells)
        made = SetContents(
            name=name,
            fields=tuple(cell.value for cell in cells),
            tree=tree,
            entries=tuple(self._entry(element, order, cells) for element in known.elements),
            room=room_for(len(known.elements)),
            origin=known.origin,
        )
        self.maps[known.name] = made
        leaf = f"struct {name}_key, u32, {name}, {made.size}"
        self.declarations += [
            f"/* ipset {_safe(known.name)} {known.type} */",
            f"struct {name}_key {{ {'u32 length; ' if tree else ''}u32 word[{words}]; }};",
            f'BPF_F_TABLE("{"lpm_trie" if tree else "hash"}", {leaf}, BPF_F_NO_PREALLOC);',
        ]
        return made

    def _words(self, cell: Cell) -> int:
        return self.family.bits // 32 if cell in (Cell.ADDRESS, Cell.NET) else 1

    def _entry(self, element: SetElement, order: list[int], cells: list[Cell]) -> SetEntry:
        words: list[int] = []
        length = 0
        for at, cell in zip(order, cells, strict=True):
            interval = element.key[at]
            words += _split(interval.low, self._words(cell))
            length += 32 * self._words(cell) if cell is not Cell.NET else _prefix(interval, self.family)
        return SetEntry(words=tuple(words), length=length, member=not element.nomatch, origin=element.origin)

    def _function(self, test: SetTest) -> str:
        known = self.given[test.name]
        made = self._map(known)
        name = "_".join((f"in_{made.name}", *(side.value for side in test.directions)))
        values: list[str] = []
        guards: list[str] = []
        sides = [
            side for side, cells in zip(test.directions, known.type.dimensions, strict=True) for _ in cells
        ]
        for at in _key_order(known):
            src = sides[at] is SetDirection.SRC
            match known.type.cells[at]:
                case Cell.ADDRESS | Cell.NET as cell:
                    address = f"p->{'saddr' if src else 'daddr'}"
                    count = self._words(cell)
                    values += [
                        f"(u32)({address} >> {32 * n})" if n else f"(u32){address}"
                        for n in range(count - 1, -1, -1)
                    ]
                case Cell.PROTOCOL:
                    values.append("p->proto")
                case Cell.PORT:
                    values.append("(u32)port")
                    guards += [f"\tint port = ipset_port(p, {int(src)});", ""]
        if known.type is SetType.BITMAP_PORT:
            guards += ["\tif (p->proto != PROTO_TCP && p->proto != PROTO_UDP)", "\t\treturn 0;"]
        if guards:
            guards += ["\tif (port < 0)", "\t\treturn 0;"]
        if made.tree:
            values = [f"bpf_htonl({value})" for value in values]
        self.declarations += [
            f"INLINE int {name}(struct pkt *p)",
            "{",
            f"\tstruct {made.name}_key key = {{}};",
            "\tu32 *found;",
            *guards,
            *(["\tkey.length = 8 * sizeof(key.word);"] if made.tree else []),
            *(f"\tkey.word[{i}] = {value};" for i, value in enumerate(values)),
            f"\tfound = {made.name}.lookup(&key);",
            "\treturn found && *found;",
            "}",
            "",
        ]
        return name


def _key_order(known: IpSet) -> list[int]:
    """The cells of a key by number, a net last: the trie compares from the front."""
    cells = known.type.cells
    return sorted(range(len(cells)), key=lambda at: cells[at] is Cell.NET)


def _split(value: int, words: int) -> list[int]:
    """A number as words of 32 bits, the highest first."""
    return [value >> 32 * n & 0xFFFFFFFF for n in range(words - 1, -1, -1)]


def _prefix(interval: Interval, family: Family) -> int:
    length = interval.prefix_length(family.bits)
    assert length is not None
    return length


def _safe(text: str) -> str:
    return re.sub(r"[^ -~]", "?", text).replace("*/", "* /")
