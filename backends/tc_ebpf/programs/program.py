"""A compiled program in the kernel, which exists as long as the descriptors of its functions and maps."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import reduce
from pathlib import Path
from typing import Final, Self

from backends.tc_ebpf.filters import Side
from backends.tc_ebpf.programs import bpfcall
from backends.tc_ebpf.programs.bpfmap import BpfMap
from backends.tc_ebpf.programs.cache import Cache, cache_folder, program_key
from backends.tc_ebpf.programs.compiled import CompiledProgram, Descriptors
from backends.tc_ebpf.programs.compiler import compile_program, explain_refusal
from backends.tc_ebpf.programs.runtimes import Runtime, Runtimes
from translate.bpf import FUNCTIONS, PROGRAMS, BpfOutput, TranslationUnit
from translate.errors import MachineError

__all__ = ["LoadedProgram", "compiled"]

_NOTHING: Final = struct.pack("=BBhi BBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0)
"""``r0 = 0; exit``"""


def compiled(output: BpfOutput, log: Path | None = None, *, cache: Cache | None) -> CompiledProgram:
    """Return a translation's program. Each unit is taken from the cache, or compiled and cached.

    The sizes of maps are not part of it. Raises MachineError with the compiler's errors; ``log`` receives its
    whole output.
    """
    units = (_unit(unit, log, cache) for unit in output.units)
    try:
        return reduce(CompiledProgram.linked, units)
    except ValueError as e:
        raise MachineError(f"the units of the tc program do not fit: {e}") from e


def _unit(unit: TranslationUnit, log: Path | None, cache: Cache | None) -> CompiledProgram:
    if cache is not None:
        key = program_key(unit.text)
        cached = cache.get(key)
        if cached is not None and _fits(cached, unit):
            return cached
    program = compile_program(unit.text, unit.functions, unit.maps, log)
    if cache is not None:
        cache.put(key, program)
    return program


def _fits(program: CompiledProgram, unit: TranslationUnit) -> bool:
    maps = tuple(declared.name for declared in program.maps)
    functions = tuple(function.name for function in program.functions)
    return (maps, functions) == (unit.maps, unit.functions)


def _number(value: int) -> bytes:
    return value.to_bytes(4, sys.byteorder)


class LoadedProgram:
    """A translation, loaded from the cache or compiled now.

    ``kept`` are pinned maps that it uses instead of new ones, by name. ``log`` is the file for the whole log
    of the compiler or the verifier if they refuse. Without ``cached``, it is always compiled. With
    ``runtimes``, it uses one of these until it is closed. Raises MachineError with the relevant lines of the
    log.
    """

    def __init__(
        self,
        output: BpfOutput,
        log: Path | None = None,
        *,
        kept: Mapping[str, Path] | None = None,
        cached: bool = True,
        runtimes: Runtimes | None = None,
    ) -> None:
        _insist_on_permission()
        cache = Cache(cache_folder()) if cached else None
        self._runtime: Runtime | None = None
        if runtimes is None or len(output.units) == 1:
            program = compiled(output, log, cache=cache)
            self._descriptors = _load(program, output, kept or {}, log)
        else:
            rules, rest = (_unit(unit, log, cache) for unit in output.units)
            with _explained(output, log):
                self._runtime, self._descriptors = runtimes.load(rules, rest, _sizes(output))
        functions = self._descriptors.functions
        self.entries = {side: functions[f"nfparity_{side.word}"] for side in Side}
        """Descriptors of the programs for the two sides of a device."""
        programs = self._descriptors.maps["programs"]
        for number, name in enumerate(PROGRAMS):
            bpfcall.update(programs, _number(number), _number(functions[f"nfparity_{name}"]))

    def __enter__(self) -> Self:
        """Return the program."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close all descriptors."""
        self.close()

    def close(self) -> None:
        """Close all descriptors, and reset a runtime of ``runtimes``; attached and pinned objects stay."""
        for descriptor in (*self._descriptors.maps.values(), *self._descriptors.functions.values()):
            os.close(descriptor)
        self._descriptors = Descriptors({}, {})
        if self._runtime is not None:
            self._runtime.reset()
            self._runtime = None

    def map(self, name: str) -> BpfMap:
        """Return one of its maps. Raises KeyError."""
        return BpfMap(name, self._descriptors.maps[name])


def _insist_on_permission() -> None:
    """Load a program that does nothing, so that a lack of permission is reported before compiling."""
    try:
        os.close(bpfcall.load_program("nfparity_nothing", _NOTHING))
    except OSError as e:
        raise MachineError(f"no permission to load BPF programs: {e.strerror}; root is needed") from e


def _load(
    program: CompiledProgram, output: BpfOutput, kept: Mapping[str, Path], log: Path | None
) -> Descriptors:
    with ExitStack() as opened:
        pinned_maps = {}
        for name, path in kept.items():
            try:
                pinned_maps[name] = bpfcall.open_pinned(path)
            except OSError as e:
                raise MachineError(f"cannot open {path}: {e.strerror}") from e
            opened.callback(os.close, pinned_maps[name])
        with _explained(output, log):
            return program.load(_sizes(output), pinned_maps)


def _sizes(output: BpfOutput) -> dict[str, int]:
    return {name: declared.size for name, declared in output.declared.items()}


@contextmanager
def _explained(output: BpfOutput, log: Path | None) -> Iterator[None]:
    try:
        yield
    except ValueError as e:
        raise MachineError(f"the tc program does not load: {e}") from e
    except OSError as e:
        raise explain_refusal(output.source, FUNCTIONS, log) from e
