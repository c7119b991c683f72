"""A compiled tc program as plain data: instructions, maps and types, ready for bpf(2) on any machine.

Instructions refer to a map by its index in ``maps``. :meth:`CompiledProgram.load` creates the maps and
replaces the indices by descriptors (``ld_imm64`` with the source register ``BPF_PSEUDO_MAP_FD``).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final

from backends.tc_ebpf.programs import bpfcall
from backends.tc_ebpf.programs.bpfcall import MapInfo
from translate.dataclass import dataclass, replace

__all__ = ["CompiledFunction", "CompiledMap", "CompiledProgram", "Descriptors"]

_LOAD_IMMEDIATE: Final = 0x18  # BPF_LD | BPF_DW | BPF_IMM
_MAP: Final = 1  # BPF_PSEUDO_MAP_FD
_NUMBER: Final = struct.Struct("=I")


@dataclass(frozen=True, slots=True)
class CompiledMap:
    """A map that the program declares."""

    name: str
    info: MapInfo


@dataclass(frozen=True, slots=True)
class CompiledFunction:
    """One program of type ``BPF_PROG_TYPE_SCHED_CLS``."""

    name: str
    instructions: bytes


@dataclass(frozen=True, slots=True)
class Descriptors:
    """File descriptors of a loaded program's maps and functions, by name."""

    maps: dict[str, int]
    functions: dict[str, int]


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """Functions, their maps, and the BTF object of the maps' keys and values (empty without one).

    It can be one unit of a program.
    """

    functions: tuple[CompiledFunction, ...]
    maps: tuple[CompiledMap, ...]
    types: bytes

    def linked(self, other: CompiledProgram) -> CompiledProgram:
        """Return the program with the functions of both, which uses this one's maps.

        Raises ValueError if a map of ``other`` is missing here or is declared differently.
        """
        places = self.places(other)
        if places == list(range(len(places))):
            return replace(self, functions=(*self.functions, *other.functions))
        moved = (replace(f, instructions=with_maps(f.instructions, places)) for f in other.functions)
        return replace(self, functions=(*self.functions, *moved))

    def places(self, other: CompiledProgram) -> list[int]:
        """Return the places of the maps of ``other`` among this program's; ValueError as for linking."""
        places = {declared.name: place for place, declared in enumerate(self.maps)}
        numbers = []
        for declared in other.maps:
            place = places.get(declared.name)
            if place is None or _untyped(self.maps[place].info) != _untyped(declared.info):
                raise ValueError(f"the map {declared.name} is not the same in both")
            numbers.append(place)
        return numbers

    def load(
        self, sizes: Mapping[str, int], kept: Mapping[str, int], loaded: Mapping[bytes, int] | None = None
    ) -> Descriptors:
        """Create the maps with these sizes, in entries, load the functions, and return descriptors of both.

        ``kept`` are descriptors of maps to use instead of new ones; a copy of each is returned. So are
        ``loaded`` of functions, by their instructions, which must have been loaded with the same maps. Raises
        OSError with the kernel's error, ValueError for a kept map that does not fit; then nothing remains
        open.
        """
        loaded = loaded or {}
        with ExitStack() as opened:
            types = 0
            if self.types:
                types = bpfcall.load_types(self.types)
                opened.callback(os.close, types)
            with ExitStack() as created:
                maps: dict[str, int] = {}
                for declared in self.maps:
                    maps[declared.name] = _map(declared, sizes, kept, types)
                    created.callback(os.close, maps[declared.name])
                descriptors = list(maps.values())
                functions: dict[str, int] = {}
                for function in self.functions:
                    present = loaded.get(function.instructions)
                    if present is None:
                        code = with_maps(function.instructions, descriptors)
                        functions[function.name] = bpfcall.load_program(function.name, code)
                    else:
                        functions[function.name] = os.dup(present)
                    created.callback(os.close, functions[function.name])
                created.pop_all()
        return Descriptors(maps, functions)


def _untyped(info: MapInfo) -> MapInfo:
    return replace(info, key_type=0, value_type=0)  # numbers in the BTF object of one unit


def _map(compiled: CompiledMap, sizes: Mapping[str, int], kept: Mapping[str, int], types: int) -> int:
    if compiled.name not in kept:
        return bpfcall.create_map(
            compiled.name,
            replace(compiled.info, max_entries=sizes.get(compiled.name, compiled.info.max_entries)),
            types,
        )
    present = bpfcall.map_info(kept[compiled.name])
    required = (compiled.info.kind, compiled.info.key_size, compiled.info.value_size)
    if (present.kind, present.key_size, present.value_size) != required:
        raise ValueError(f"the map {compiled.name} has another kind, or keys or values of another size")
    return os.dup(kept[compiled.name])


def with_maps(instructions: bytes, numbers: Mapping[int, int] | list[int]) -> bytes:
    """Return the instructions with the number of each map replaced by its value in ``numbers``.

    Raises KeyError or IndexError for a number that ``numbers`` lacks.
    """
    code = bytearray(instructions)
    at = 0
    while at < len(code):
        wide = code[at] == _LOAD_IMMEDIATE
        if wide and code[at + 1] >> 4 == _MAP:
            (number,) = _NUMBER.unpack_from(code, at + 4)
            _NUMBER.pack_into(code, at + 4, numbers[number])
        at += 16 if wide else 8
    return bytes(code)
