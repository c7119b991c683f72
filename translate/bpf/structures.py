"""The structures and maps that a program's text declares, read from the text itself.

What a loaded program keeps is read and handed on without compiling anything: this says where the members
of its structures lie, as C has them on 64-bit machines, and which maps hold them.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["DeclaredMap", "Member", "Structure", "declared_maps", "layouts", "structures"]

_NUMBERS: Final = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "unsigned __int128": 16}
_OPAQUE: Final = {"struct bpf_spin_lock": 4}

_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_DEFINE: Final = re.compile(r"^#define (\w+) (\d+)\b", re.MULTILINE)
_TYPEDEF: Final = re.compile(r"^typedef ([\w ]+?) (\w+);", re.MULTILINE)
_STRUCTURE: Final = re.compile(r"^struct (\w+) \{(.*?)\};", re.MULTILINE | re.DOTALL)
_MAP: Final = re.compile(
    r'^BPF_(?:F_)?TABLE\("(\w+)", ([\w ]+), ([\w ]+), (\w+), (\w+)[^;]*\);', re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member that is a number (or ``count`` of them): where it begins and how long one is, in bytes.

    Members of members have names with dots.
    """

    name: str
    offset: int
    size: int
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """A structure and its members, in order; ``align`` is what its offset is a multiple of."""

    name: str
    members: tuple[Member, ...]
    size: int
    align: int

    def numbers(self, data: bytes) -> dict[str, int]:
        """Return the members that stand alone, by name. Raises ValueError when ``data`` has another size."""
        if len(data) != self.size:
            raise ValueError(f"struct {self.name} has {self.size} bytes, not {len(data)}")
        return {
            m.name: int.from_bytes(data[m.offset : m.offset + m.size], sys.byteorder)
            for m in self.members
            if m.count == 1
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredMap:
    """A map: its kind as BCC calls it, the C types of keys and values, how many entries it takes.

    ``room`` is None where the text has it by another name than that of a number.
    """

    name: str
    kind: str
    key: str
    value: str
    room: int | None


def structures(text: str) -> dict[str, Structure]:
    """Return the structures of a text, without those that have members of types that are not known."""
    plain = _COMMENT.sub("", text)
    constants = _constants(plain)
    types = {word: (size, size) for word, size in (*_NUMBERS.items(), *_OPAQUE.items())}
    for known, word in _TYPEDEF.findall(plain):
        if known in types:
            types[word] = types[known]
    found: dict[str, Structure] = {}
    for name, body in _STRUCTURE.findall(plain):
        try:
            made = _structure(name, body, types, found, constants)
        except ValueError:
            continue
        found[name] = made
        types[f"struct {name}"] = made.size, made.align
    return found


def declared_maps(text: str) -> dict[str, DeclaredMap]:
    """Return the maps of a text by name."""
    constants = _constants(text)
    return {
        name: DeclaredMap(name=name, kind=kind, key=key, value=value, room=_room(room, constants))
        for kind, key, value, name, room in _MAP.findall(text)
    }


def layouts(text: str, names: Collection[str]) -> dict[str, str]:
    """Return, for each of these maps that there is, what differs when its entries mean something else.

    Raises ValueError where their structure is not known.
    """
    known = structures(text)
    found = {}
    for name, one in declared_maps(text).items():
        if name in names:
            kinds = [_members(known, kind) for kind in (one.key, one.value)]
            found[name] = hashlib.sha256(f"{one.kind} {kinds}".encode()).hexdigest()[:16]
    return found


def _members(known: Mapping[str, Structure], kind: str) -> object:
    if not kind.startswith("struct "):
        return kind
    structure = known.get(kind.removeprefix("struct "))
    if structure is None:
        raise ValueError(f"unknown structure: {kind}")
    return structure.members


def _structure(
    name: str,
    body: str,
    types: Mapping[str, tuple[int, int]],
    known: Mapping[str, Structure],
    constants: Mapping[str, int],
) -> Structure:
    members: list[Member] = []
    offset, widest = 0, 1
    for declaration in (" ".join(d.split()) for d in body.split(";")):
        if not declaration:
            continue
        kind, declared = _kind(declaration, types)
        size, align = types[kind]
        widest = max(widest, align)
        for one in declared.split(","):
            word, count = _declarator(one, constants)
            offset = -(-offset // align) * align
            inner = known.get(kind.removeprefix("struct ")) if kind.startswith("struct ") else None
            if inner is not None and count == 1:
                members += [
                    Member(name=f"{word}.{m.name}", offset=offset + m.offset, size=m.size, count=m.count)
                    for m in inner.members
                ]
            else:
                members.append(Member(name=word, offset=offset, size=size, count=count))
            offset += size * count
    return Structure(name=name, members=tuple(members), size=-(-offset // widest) * widest, align=widest)


def _kind(declaration: str, types: Mapping[str, tuple[int, int]]) -> tuple[str, str]:
    for kind in sorted(types, key=len, reverse=True):
        if declaration.startswith(f"{kind} "):
            return kind, declaration[len(kind) + 1 :]
    raise ValueError(f"unknown type: {declaration}")


def _declarator(text: str, constants: Mapping[str, int]) -> tuple[str, int]:
    match = re.fullmatch(r"(\w+)(?:\[(\w+)(?: - (\w+))?\])?", text.strip())
    if match is None:
        raise ValueError(f"unknown declarator: {text}")
    if not match[2]:
        return match[1], 1
    less = _number(match[3], constants) if match[3] else 0
    return match[1], _number(match[2], constants) - less


def _constants(text: str) -> dict[str, int]:
    return {name: int(value) for name, value in _DEFINE.findall(text)}


def _room(word: str, constants: Mapping[str, int]) -> int | None:
    return int(word) if word.isdigit() else constants.get(word)


def _number(word: str, constants: Mapping[str, int]) -> int:
    if word.isdigit():
        return int(word)
    if word not in constants:
        raise ValueError(f"unknown number: {word}")
    return constants[word]
