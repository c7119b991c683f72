"""Compilation of C text with BCC, and BCC's explanation of a program that the kernel refuses."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from backends.tc_ebpf.programs import bpfcall
from backends.tc_ebpf.programs.bcc import import_bcc, provided_headers
from backends.tc_ebpf.programs.compiled import CompiledFunction, CompiledMap, CompiledProgram, with_maps
from backends.tc_ebpf.programs.verifier_log import shorten
from translate.dataclass import replace
from translate.errors import MachineError

__all__ = ["FLAGS", "compile_program", "explain_refusal"]

FLAGS: Final = ("-Xclang", "-disable-llvm-passes")
"""Flags that switch off clang's passes: BCC optimises clang's output itself.

Optimising twice takes longer, here and in the verifier.
"""


def compile_program(
    source: str, functions: Sequence[str], maps: Sequence[str], log: Path | None = None
) -> CompiledProgram:
    """Compile a text with these functions and maps.

    BCC creates the maps while it compiles; they end with this call. Raises MachineError with the compiler's
    errors; ``log`` receives its whole output.
    """
    with _compiled(source, log) as (bpf, _):
        maps_made = [CompiledMap(name, bpfcall.map_info(bpf[name.encode()].map_fd)) for name in maps]
        numbers = {bpf[name.encode()].map_fd: at for at, name in enumerate(maps)}
        compiled = [
            CompiledFunction(name, with_maps(bpf.dump_func(name.encode()), numbers)) for name in functions
        ]
        described = {made_map.info.types for made_map in maps_made} - {0}
        if len(described) > 1:
            raise MachineError(f"the maps have {len(described)} BTF objects; BCC was expected to make one")
        types = bpfcall.types_of(described.pop()) if described else b""
    # The kernel's numbers of these maps are removed, so that the same text compiles to the same program.
    declared = [
        replace(made_map, info=replace(made_map.info, number=0, types=int(made_map.info.types > 0)))
        for made_map in maps_made
    ]
    return CompiledProgram(tuple(compiled), tuple(declared), types)


def explain_refusal(source: str, functions: Sequence[str], log: Path | None = None) -> MachineError:
    """Return an error with the kernel's reason to refuse a program, and the line of C.

    Only BCC tells the kernel which instruction belongs to which line, so BCC loads the program again.
    """
    with _compiled(source, log) as (bpf, output):
        for name in functions:
            try:
                bpf.load_func(name.encode(), import_bcc().BPF.SCHED_CLS)
            except Exception as e:  # BCC raises bare Exceptions
                return MachineError(_refusal(str(e), output(), log))
    return MachineError("the tc program does not load, although it does when BCC loads it")


@contextmanager
def _compiled(source: str, log: Path | None) -> Iterator[tuple[Any, Callable[[], str]]]:
    bcc = import_bcc()
    with provided_headers() as flags, _captured() as output:
        try:
            bpf = bcc.BPF(text=source.encode(), cflags=[*FLAGS, *flags])
        except Exception as e:  # BCC raises bare Exceptions
            raise MachineError(_refusal(str(e), output(), log)) from e
        try:
            yield bpf, output
        finally:
            atexit.unregister(bpf.cleanup)  # which would keep all objects alive
            bpf.cleanup()


def _refusal(error: str, output: str, log: Path | None) -> str:
    text = f"the tc program does not load: {shorten(error, output)}"
    if log is None:
        return text
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"{error}\n{output}", errors="replace")
    except OSError as e:
        return f"{text}\n(the whole log cannot be kept in {log}: {e.strerror})"
    return f"{text}\n(the whole log is in {log})"


@contextmanager
def _captured() -> Iterator[Callable[[], str]]:
    """Capture the output of compiler and verifier on stderr; yield a function that returns it."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        saved_stderr = os.dup(2)
        os.dup2(file.fileno(), 2)

        def output() -> str:
            file.seek(0)
            return file.read().decode(errors="replace")

        try:
            yield output
        finally:
            os.dup2(saved_stderr, 2)
            os.close(saved_stderr)
