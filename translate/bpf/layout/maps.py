"""The maps of rules and ipsets, and their entries."""

from __future__ import annotations

import struct
from typing import Final

from translate.bpf.layout.states import SET_ELEMENT
from translate.bpf.layout.structures import DeclaredMap, Number, Structure
from translate.bpf.layout.tables import ARGUMENTS, ENTRY, U32
from translate.dataclass import dataclass, field, replace
from translate.ir import NOWHERE, Origin

__all__ = [
    "LEAST_ENTRIES",
    "MapContents",
    "MapEntry",
    "SetContents",
    "SetEntry",
    "max_entries_for",
]

LEAST_ENTRIES: Final = 1024
"""The smallest size of the map of a lookup or of an ipset, in entries."""


def max_entries_for(entries: int) -> int:
    """Return the size of a map that starts with ``entries`` entries: a power of two, at least twice as large.

    Keys and values take memory only for existing entries. An unused entry costs the 16 bytes of its bucket.
    """
    return max(LEAST_ENTRIES, 1 << (2 * entries - 1).bit_length() if entries else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapEntry:
    """A key (a number per member) and its value: the code of the actions and their numbers."""

    key: tuple[int, ...]
    code: int
    arguments: tuple[int, ...]
    origin: Origin = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapContents:
    """The map of a lookup, a hash or a ``trie``; ``fields`` names the members of ``key`` in comments."""

    name: str
    fields: tuple[str, ...]
    key: Structure
    entries: tuple[MapEntry, ...]
    trie: bool = False
    max_entries: int = LEAST_ENTRIES

    @property
    def declared(self) -> DeclaredMap:
        """The declaration of the map."""
        return _declared(self.name, self.key, ENTRY, self.max_entries, trie=self.trie)

    def packed(self) -> list[tuple[bytes, bytes]]:
        """Return keys and values as bytes of the C structures.

        Addresses are in network byte order, numbers in this machine's byte order.
        """
        if not self.entries:
            return []
        # Packed in one call, because a large ruleset has tens of thousands of entries. They have no padding.
        widths = [
            declarator.size if isinstance(declarator.type, Structure) else 0
            for declarator in self.key.declarators
        ]
        columns = [
            [part.to_bytes(width, "big") for part in column] if width else column
            for width, column in zip(
                widths, zip(*(entry.key for entry in self.entries), strict=True), strict=True
            )
        ]
        kinds = "".join(f"{width}s" if width else "I" for width in widths)
        keys = map(struct.Struct(f"={kinds}").pack, *columns)
        pack = struct.Struct(f"={ENTRY.size // U32.size}I").pack
        padding = [(0,) * (ARGUMENTS - count) for count in range(ARGUMENTS + 1)]
        values = (pack(e.code, *e.arguments, *padding[len(e.arguments)]) for e in self.entries)
        return list(zip(keys, values, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class SetEntry:
    """An element of an ipset: its key in words of 32 bits, and the length of its prefix in bits."""

    words: tuple[int, ...]
    length: int
    member: bool
    origin: Origin = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetContents:
    """The map of an ipset: a ``trie`` of longest prefixes, or a hash.

    Rules change a ``filled`` set. One with ``timeouts`` forgets the least recently used element if it is
    full; others then take no new one (``mtype_add``).
    """

    name: str
    fields: tuple[str, ...]
    key: Number | Structure
    entries: tuple[SetEntry, ...]
    trie: bool = False
    max_entries: int = LEAST_ENTRIES
    filled: bool = False
    timeouts: bool = False
    origin: Origin = field(default=NOWHERE, compare=False)

    @property
    def declared(self) -> DeclaredMap:
        """The declaration of the map."""
        value = SET_ELEMENT if self.filled else U32
        declared = _declared(self.name, self.key, value, self.max_entries, trie=self.trie)
        return replace(declared, kind="lru_hash", flags="") if self.timeouts else declared

    def packed(self) -> list[tuple[bytes, bytes]]:
        """Return keys and values as bytes of the C structures; a trie compares from the first byte."""
        order = "!" if self.trie else "="
        return [
            (
                (struct.pack("=I", e.length) if self.trie else b"")
                + struct.pack(f"{order}{len(e.words)}I", *e.words),
                SET_ELEMENT.pack(member=e.member) if self.filled else struct.pack("=I", e.member),
            )
            for e in self.entries
        ]


def _declared(
    name: str, key: Number | Structure, value: Number | Structure, size: int, *, trie: bool
) -> DeclaredMap:
    return DeclaredMap(
        name=name,
        kind="lpm_trie" if trie else "hash",
        key=key,
        value=value,
        size=size,
        size_macro=f"MAX_ENTRIES_OF_{name}",
        flags="BPF_F_NO_PREALLOC",
    )
