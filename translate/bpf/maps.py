"""What the emitter hands over: C text, and the entries of its lookup maps."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from translate.errors import Note
from translate.ir import NOWHERE, Family, Origin

if TYPE_CHECKING:
    from translate.bpf.change import BpfChange

__all__ = [
    "ARGUMENTS",
    "CONNECTIONS",
    "BpfOutput",
    "MapContents",
    "MapEntry",
    "SetContents",
    "SetEntry",
    "remark",
    "room_for",
]

ARGUMENTS: Final = 12
"""Numbers of 32 bits that a lookup's entry can carry for its actions, besides which actions they are.

Two addresses of IPv6, two ports, a mark and its mask.
"""

CONNECTIONS: Final = 65536
"""How many connections a program remembers unless it is told otherwise."""

PROCESSORS: Final = 16
"""How many processors a program has slots for unless it is told otherwise."""

_MOST_SLOTS: Final = 1 << 15
"""What a packet can say of its slot: the higher bit of ``tc_index`` has another meaning."""

_SLOTS_EACH: Final = 256

LEAST_ROOM: Final = 1024

_REMARK: Final = re.compile(r"^\t*/\* (?:line \d+|generated) \*/\n", re.MULTILINE)


def remark(origin: Origin) -> str:
    """Return the line of C that says where the next ones come from; :attr:`BpfOutput.source` has none."""
    return f"/* line {origin.line} */" if origin.line else "/* generated */"


def room_for(entries: int) -> int:
    """Return how many entries a map takes that starts with so many: twice as many at least, a power of two.

    Memory is taken for entries that are there; for others 16 bytes of the table's.
    """
    return max(LEAST_ROOM, 1 << (2 * entries - 1).bit_length() if entries else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapEntry:
    """One key (a number per field) and its value: which actions, and the numbers in them."""

    key: tuple[int, ...]
    code: int
    arguments: tuple[int, ...]
    origin: Origin = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapContents:
    """A map of the program and what belongs into it.

    ``fields`` names the parts of the key; ``addresses`` gives the sizes in bytes of those that are
    addresses, and 0 for the others, which are numbers. It takes ``room`` entries.
    """

    name: str
    fields: tuple[str, ...]
    addresses: tuple[int, ...]
    entries: tuple[MapEntry, ...]
    room: int = LEAST_ROOM

    @property
    def size(self) -> str:
        """The macro of the C text that stands for ``room``."""
        return _size(self.name)

    def packed(self) -> list[tuple[bytes, bytes]]:
        """Return keys and values as the C structures have them.

        Addresses stand there as in packets, numbers in this machine's byte order.
        """
        if not self.entries:
            return []
        columns = [
            [part.to_bytes(width, "big") for part in column] if width else column
            for width, column in zip(
                self.addresses, zip(*(entry.key for entry in self.entries), strict=True), strict=True
            )
        ]
        kinds = "".join(f"{width}s" if width else "I" for width in self.addresses)
        keys = map(struct.Struct(f"={kinds}").pack, *columns)
        pack = struct.Struct(f"={1 + ARGUMENTS}I").pack
        padding = [(0,) * (ARGUMENTS - count) for count in range(ARGUMENTS + 1)]
        values = (pack(e.code, *e.arguments, *padding[len(e.arguments)]) for e in self.entries)
        return list(zip(keys, values, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class SetEntry:
    """One element of an ipset: its key in words of 32 bits, and how many bits of it count in a trie."""

    words: tuple[int, ...]
    length: int
    member: bool
    origin: Origin = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetContents:
    """The map of an ipset. A ``tree`` is a trie of longest prefixes, otherwise it is a hash."""

    name: str
    fields: tuple[str, ...]
    tree: bool
    entries: tuple[SetEntry, ...]
    room: int = LEAST_ROOM
    origin: Origin = field(default=NOWHERE, compare=False)

    @property
    def size(self) -> str:
        """The macro of the C text that stands for ``room``."""
        return _size(self.name)

    def packed(self) -> list[tuple[bytes, bytes]]:
        """Return keys and values as the C structures have them; a trie compares from the first byte."""
        order = "!" if self.tree else "="
        return [
            (
                (struct.pack("=I", e.length) if self.tree else b"")
                + struct.pack(f"{order}{len(e.words)}I", *e.words),
                struct.pack("=I", e.member),
            )
            for e in self.entries
        ]


def _size(name: str) -> str:
    return f"ROOM_OF_{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BpfOutput:
    """A translation: C text for BCC, and the contents of its maps.

    ``before`` and ``after`` are the runtime, the same for every ruleset of a ``family`` (but for lists of
    ``-m recent``); ``chains`` is generated, with remarks on where it comes from. ``sets`` are the ipsets;
    with ``lists`` there is the map ``recents``; ``connections`` is how many are remembered, before those that
    were used least recently are forgotten; as many ``processors`` have slots of their own for packets under
    way; ``notes`` say where iptables knows other limits.
    """

    before: str
    chains: str
    after: str
    maps: tuple[MapContents, ...]
    sets: tuple[SetContents, ...] = ()
    family: Family = Family.IP
    lists: bool = False
    notes: tuple[Note, ...] = ()
    connections: int = CONNECTIONS
    processors: int = PROCESSORS

    @property
    def source(self) -> str:
        """The whole program, as BCC compiles it.

        Rulesets that differ in entries of maps alone have the same, but for how many entries a map takes.
        """
        return self._program(_REMARK.sub("", self.chains), self._sizes())

    @property
    def text(self) -> str:
        """What is compiled, without how many entries the maps take."""
        return "\n".join((self.before, _REMARK.sub("", self.chains), self.after))

    @property
    def shape(self) -> str:
        """The program as ``source``, with room for one entry in each map that holds rules or connections.

        Rulesets that differ in entries of maps alone have the same. Maps are made with their room later.
        """
        sizes = (("CONNECTIONS", 1), *self._slots(), *((size, 1) for size, _ in self._rooms()))
        return self._program(_REMARK.sub("", self.chains), sizes)

    def change_from(self, old: BpfOutput) -> BpfChange:
        """Return what makes the maps of ``old``, as it is loaded, those of this translation."""
        from translate.bpf.change import change

        return change(old, self)

    def render(self) -> str:
        """Return the program, with remarks on where it comes from, and the maps' contents as comments."""
        return f"{self._program(self.chains, self._sizes())}\n{self._contents()}"

    def _sizes(self) -> Iterator[tuple[str, int]]:
        yield "CONNECTIONS", self.connections
        yield from self._slots()
        yield from self._rooms()

    def _program(self, chains: str, sizes: Iterable[tuple[str, int]]) -> str:
        rooms = "".join(f"#define {size} {room}\n" for size, room in sizes)
        return "\n".join((rooms, self.before, chains, self.after))

    def render_rules(self) -> str:
        """Return what was generated from the rules alone: chains and contents, without the runtime."""
        return f"{self.chains}\n{self._contents()}"

    def _slots(self) -> Iterator[tuple[str, int]]:
        """Powers of two; a processor has fewer where there are very many."""
        processors = 1 << (self.processors - 1).bit_length()
        each = min(_SLOTS_EACH, _MOST_SLOTS // processors)
        yield "SLOTS_EACH", each
        yield "SLOTS", each * processors

    def _rooms(self) -> Iterator[tuple[str, int]]:
        yield from ((one.size, one.room) for one in self.maps)
        yield from ((one.size, one.room) for one in self.sets)

    def _contents(self) -> str:
        lines = []
        for contents in self.maps:
            lines.append(f"/* {contents.name}: {' . '.join(contents.fields)}")
            for entry in contents.entries:
                key = " . ".join(f"{part:#x}" for part in entry.key)
                arguments = " ".join(f"{one:#x}" for one in entry.arguments)
                line = f" *   {key} : {entry.code} {arguments}".rstrip()
                lines.append(f"{line} (line {entry.origin.line})" if entry.origin.line else line)
            lines.append(" */")
        for members in self.sets:
            where = f" (line {members.origin.line} of its file)" if members.origin.line else ""
            lines.append(f"/* {members.name}: {' . '.join(members.fields)}{where}")
            for one in members.entries:
                line = " *   " + " . ".join(f"{word:#x}" for word in one.words)
                line += f" /{one.length}" if members.tree else ""
                line += "" if one.member else " nomatch"
                lines.append(f"{line} (line {one.origin.line})" if one.origin.line else line)
            lines.append(" */")
        return "".join(f"{line}\n" for line in lines)
