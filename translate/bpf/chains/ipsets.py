"""ipsets as maps of the tc program, one map each.

A set is a hash, or with nets a trie in which the other parts of the key come before the net, so that the
element with the longest prefix matches (``mtype_test_cidrs`` of ``ip_set_hash_gen.h``). The value is 1 for a
member and 0 for an element with ``nomatch``; in a set that rules change, it also has the time at which the
element ends.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from translate.bpf.chains.code import Condition, Declaration, Needs
from translate.bpf.layout.maps import SetContents, SetEntry, max_entries_for
from translate.bpf.layout.structures import Declarator, Structure
from translate.bpf.layout.tables import U32, RuntimePart
from translate.bpf.refusals import CannotExpress
from translate.dataclass import dataclass
from translate.ir import (
    Cell,
    Family,
    Interval,
    IpSet,
    SetDirection,
    SetElement,
    SetTest,
    SetType,
    SetUpdate,
)

__all__ = ["SetMap", "set_maps"]

_MOST: Final = 65536
"""The maximum number of elements of a set without ``maxelem``."""
_LONGEST: Final = 2147483
"""The longest timeout in seconds (``IPSET_MAX_TIMEOUT``)."""
_PORTS: Final = 65536
_LARGEST: Final = 1 << 20
"""The most elements for which the map of a set that rules change has room."""


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
        function = Declaration((*_reading(name, self, test, family, value=0), *_lookup(self, test), "}", ""))
        return Condition(f"{'!' if test.negated else ''}{name}(p)", self._needs(function))

    def change(self, update: SetUpdate, family: Family) -> Condition:
        """Return the condition, always true, that adds the key of ``update`` or removes it.

        Raises CannotExpress for a set whose kind the program cannot change as the kernel does.
        """
        if Cell.NET in self.ipset.type.cells:
            reason = (
                "the length of an added network is the longest in the set, which the tc program does not know"
            )
            raise CannotExpress("set-nets", reason)
        if _option(self.ipset, "forceadd") is not None:
            reason = f"the tc program removes no element to make room in ipset {self.ipset.name}"
            raise CannotExpress("set-forceadd", reason)
        sides = tuple(side.value for side in update.directions)
        seconds = self._seconds(update)
        verb = "remove_from" if update.delete else "renew_in" if update.refresh else "add_to"
        how = () if update.delete else (str(seconds),)
        name = "_".join((verb, self.contents.name, *sides, *how))
        body = _change(self, update, seconds)
        function = Declaration(
            (*_reading(name, self, update, family, value=1), *body, "\treturn 1;", "}", "")
        )
        return Condition(f"{name}(p)", self._needs(function))

    def _seconds(self, update: SetUpdate) -> int:
        """Return the timeout of a new element, 0 for none (``ip_set_adt_opt_timeout``)."""
        default = _option(self.ipset, "timeout")
        if default is None:
            return 0
        return min(int(default) if update.timeout is None else update.timeout, _LONGEST)

    def _needs(self, function: Declaration) -> Needs:
        parts = {RuntimePart.IPSET, *((RuntimePart.FILLED_SET,) if self.contents.filled else ())}
        return Needs(parts=frozenset(parts), declarations=(self.declaration, function), sets=(self.contents,))


def set_maps(
    names: Iterable[str], ipsets: Mapping[str, IpSet], filled: Collection[str], family: Family
) -> dict[str, SetMap]:
    """Return the maps of these sets, numbered in the order of ``names``; rules change those in ``filled``."""
    return {
        name: _map(number, ipsets[name], family, filled=name in filled)
        for number, name in enumerate(dict.fromkeys(names))
    }


def _map(number: int, ipset: IpSet, family: Family, *, filled: bool) -> SetMap:
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
        max_entries=_capacity(ipset) if filled and not tree else max_entries_for(len(ipset.elements)),
        filled=filled,
        timeouts=filled and not tree and _option(ipset, "timeout") is not None,
        origin=ipset.origin,
    )
    declaration = Declaration.of_map(contents.declared, f"ipset {_safe(ipset.name)} {ipset.type}")
    return SetMap(ipset, contents, declaration)


def _capacity(ipset: IpSet) -> int:
    """Return the number of elements that a set can have."""
    if ipset.type is SetType.BITMAP_PORT:
        return _PORTS
    return max(min(int(_option(ipset, "maxelem") or _MOST), _LARGEST), len(ipset.elements), 1)


def _option(ipset: IpSet, name: str) -> str | None:
    """Return the value of an option of ``ipset create``, empty for one without a value; None without it."""
    return next((option.value or "" for option in ipset.options if option.name == name), None)


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


def _reading(
    name: str, set_map: SetMap, test: SetTest | SetUpdate, family: Family, *, value: int
) -> tuple[str, ...]:
    """Return the begin of a function that reads the packet's key by the directions of the test.

    It returns ``value`` for a packet that lacks a part of the key.
    """
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
                if kind is SetType.HASH_IP and isinstance(test, SetUpdate):
                    guards += [f"\tif (!{address})", f"\t\treturn {value};"]
            case Cell.PROTOCOL:
                values.append("p->proto")
            case Cell.PORT:
                values.append("(u32)port")
                guards += [f"\tint port = ipset_port(p, {int(src)});", ""]
    if kind is SetType.BITMAP_PORT:
        guards += ["\tif (p->proto != PROTO_TCP && p->proto != PROTO_UDP)", f"\t\treturn {value};"]
    if "(u32)port" in values:
        guards += ["\tif (port < 0)", f"\t\treturn {value};"]
    if contents.trie:
        values = [f"bpf_htonl({text})" for text in values]
    element = "struct set_element" if contents.filled else "u32"
    return (
        f"INLINE int {name}(struct pkt *p)",
        "{",
        f"\t{contents.key.text} key = {{}};",
        f"\t{element} *found;",
        *guards,
        *(["\tkey.length = 8 * sizeof(key.word);"] if contents.trie else []),
        *(f"\tkey.word[{i}] = {text};" for i, text in enumerate(values)),
        f"\tfound = {contents.name}.lookup(&key);",
    )


def _lookup(set_map: SetMap, test: SetTest) -> tuple[str, ...]:
    no = "!" if test.nomatch else ""
    if set_map.contents.filled:
        return (f"\treturn is_in_set(found, bpf_ktime_get_ns()) && {no}found->member;",)
    return (f"\treturn found && {no}*found;",)


def _change(set_map: SetMap, update: SetUpdate, seconds: int) -> tuple[str, ...]:
    """Return the change of a set behind its lookup (``mtype_add``, ``mtype_del``)."""
    name = set_map.contents.name
    if update.delete:
        return ("\tif (found)", f"\t\t{name}.delete(&key);")
    guards: list[str] = []
    if set_map.ipset.type is SetType.BITMAP_PORT:
        low, _, high = (_option(set_map.ipset, "range") or "").partition("-")
        guards = [f"\tif (port < {low} || port > {high or low})", "\t\treturn 1;"]
    return (
        "\tu64 now = bpf_ktime_get_ns();",
        f"\tstruct set_element made = {{ .ends = end_after(now, {seconds}), .member = 1 }};",
        "",
        *guards,
        "\tif (!found)",
        f"\t\t{name}.insert(&key, &made);",
        f"\telse if ({'1' if update.refresh else '!is_in_set(found, now)'})",
        "\t\tfound->ends = made.ends;",
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
