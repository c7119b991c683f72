"""Types of C that the tc program shares with Python: their declaration, their layout, and their bytes.

The layout is that of 64-bit machines: a number is aligned to its size, a structure to its widest member.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Sequence

from translate.dataclass import dataclass, field

__all__ = [
    "CType",
    "Declarator",
    "DeclaredMap",
    "Member",
    "Number",
    "Opaque",
    "Structure",
]


@dataclass(frozen=True, slots=True)
class Number:
    """An unsigned integer of ``size`` bytes; ``definition`` is the type that a typedef renames."""

    text: str
    size: int
    definition: str = ""

    @property
    def align(self) -> int:
        """The alignment in bytes."""
        return self.size

    def declaration(self) -> str:
        """Return the typedef of a number that has a definition."""
        return f"typedef {self.definition} {self.text};\n"


@dataclass(frozen=True, slots=True)
class Opaque:
    """A type of C whose members Python does not read; ``size`` is 0 if Python does not need it."""

    text: str
    size: int = 0
    align: int = 1


@dataclass(frozen=True, slots=True)
class Declarator:
    """The declaration of a member, an array if it has a ``length``."""

    type: CType
    name: str
    length: int | None = None
    comment: str = ""

    @property
    def count(self) -> int:
        """The number of values."""
        return 1 if self.length is None else self.length

    @property
    def size(self) -> int:
        """The size of all values in bytes."""
        return self.type.size * self.count

    def declaration(self) -> str:
        """Return the declaration without its comment."""
        array = "" if self.length is None else f"[{self.length}]"
        return f"{self.type.text} {self.name}{array};"

    def bytes_of(self, value: int | bytes | Sequence[int]) -> bytes:
        """Return a value as in C's memory: numbers in this machine's byte order, bytes unchanged.

        Raises ValueError for bytes of another size, OverflowError for a number that does not fit.
        """
        match value:
            case bytes():
                data = value
            case int():
                data = value.to_bytes(self.type.size, sys.byteorder)
            case _:
                data = b"".join(number.to_bytes(self.type.size, sys.byteorder) for number in value)
        if len(data) != self.size:
            raise ValueError(f"{self.name} has {self.size} bytes, not {len(data)}")
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A number or an array of ``count`` numbers in a structure: the offset, and the size of one number, in
    bytes.

    Members of members have names with dots.
    """

    name: str
    offset: int
    size: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class Structure:
    """A structure of C."""

    name: str
    declarators: tuple[Declarator, ...]
    comment: str = ""
    align: int = field(init=False, repr=False, compare=False)
    """The alignment in bytes."""
    size: int = field(init=False, repr=False, compare=False)
    """The size in bytes, with the padding at the end."""
    offsets: tuple[tuple[Declarator, int], ...] = field(init=False, repr=False, compare=False)
    """The declarators with their offsets in bytes."""
    members: tuple[Member, ...] = field(init=False, repr=False, compare=False)
    """The numbers in the structure and in its inner structures, in order."""

    def __post_init__(self) -> None:
        """Compute the layout once, because tens of thousands of connections are read and written."""
        align = max(declarator.type.align for declarator in self.declarators)
        end, offsets = 0, []
        for declarator in self.declarators:
            offset = -(-end // declarator.type.align) * declarator.type.align
            offsets.append((declarator, offset))
            end = offset + declarator.size
        object.__setattr__(self, "align", align)
        object.__setattr__(self, "size", -(-end // align) * align)
        object.__setattr__(self, "offsets", tuple(offsets))
        object.__setattr__(self, "members", tuple(self._members()))

    @property
    def text(self) -> str:
        """The name of the type in declarations."""
        return f"struct {self.name}"

    def _members(self) -> Iterator[Member]:
        for declarator, offset in self.offsets:
            if isinstance(declarator.type, Structure) and declarator.count == 1:
                for inner in declarator.type.members:
                    name = f"{declarator.name}.{inner.name}"
                    yield Member(name=name, offset=offset + inner.offset, size=inner.size, count=inner.count)
            else:
                yield Member(
                    name=declarator.name, offset=offset, size=declarator.type.size, count=declarator.count
                )

    def numbers(self, data: bytes) -> dict[str, int]:
        """Return the members that are single numbers, by name. Raises ValueError for data of another size."""
        if len(data) != self.size:
            raise ValueError(f"struct {self.name} has {self.size} bytes, not {len(data)}")
        return {
            m.name: int.from_bytes(data[m.offset : m.offset + m.size], sys.byteorder)
            for m in self.members
            if m.count == 1
        }

    def pack(self, **values: int | bytes | Sequence[int]) -> bytes:
        """Return the bytes of the structure with these values by member, and zeros for other members.

        Raises ValueError for an unknown member or for a value of another size.
        """
        data = bytearray(self.size)
        for declarator, offset in self.offsets:
            if declarator.name in values:
                data[offset : offset + declarator.size] = declarator.bytes_of(values.pop(declarator.name))
        if values:
            raise ValueError(f"struct {self.name} has no {', '.join(values)}")
        return bytes(data)

    def declaration(self) -> str:
        """Return the declaration in C, one member per line."""
        lines = [f"/* {self.comment} */"] if self.comment else []
        lines.append(f"{self.text} {{")
        for declarator in self.declarators:
            comment = f" /* {declarator.comment} */" if declarator.comment else ""
            lines.append(f"\t{declarator.declaration()}{comment}")
        return "".join(f"{line}\n" for line in (*lines, "};"))

    def inline(self) -> str:
        """Return the declaration in C on one line, without comments."""
        return f"{self.text} {{ {' '.join(declarator.declaration() for declarator in self.declarators)} }};"


CType = Number | Opaque | Structure


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredMap:
    """A map as BCC declares it: its kind, the types of keys and values, and its size in entries.

    ``size_macro`` replaces the size in the text if the size is not part of the program.
    """

    name: str
    kind: str
    key: CType
    value: CType
    size: int
    size_macro: str = ""
    flags: str = ""
    comment: str = ""

    def declaration(self) -> str:
        """Return the declaration in C."""
        macro, flags = ("BPF_F_TABLE", f", {self.flags}") if self.flags else ("BPF_TABLE", "")
        size = self.size_macro or str(self.size)
        comment = f"/* {self.comment} */\n" if self.comment else ""
        types = f"{self.key.text}, {self.value.text}"
        return f'{comment}{macro}("{self.kind}", {types}, {self.name}, {size}{flags});\n'

    def layout(self) -> str:
        """Return a digest that changes whenever the bytes of entries get another meaning."""
        types = [
            kind.members if isinstance(kind, Structure) else kind.text for kind in (self.key, self.value)
        ]
        return hashlib.sha256(f"{self.kind} {types}".encode()).hexdigest()[:16]
