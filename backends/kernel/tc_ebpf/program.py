"""A compiled program in the kernel: descriptors of its functions, and its maps. It ends with them."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from backends.kernel.tc_ebpf.bcc import import_bcc, provide_headers
from backends.kernel.tc_ebpf.bpfmap import BpfMap
from backends.kernel.tc_ebpf.complaints import shorten
from backends.kernel.tc_ebpf.filters import Side
from translate.errors import MachineError

__all__ = ["STAGES", "LoadedProgram"]

STAGES: Final = (
    "track",
    "prerouting",
    "arrived",
    "input",
    "deliver",
    "output",
    "routed",
    "forward",
    "postrouting",
    "leave",
    "bind",
    "port",
    "sctp_verify",
    "sctp_sum",
    "reject",
    "answer",
)
"""The programs that ``programs`` jumps to, in the order of ``enum program``."""


_ONCE: Final = ("-Xclang", "-disable-llvm-passes")
"""BCC optimises whatever clang hands over; optimised twice, it takes longer, here and in the verifier."""


class LoadedProgram:
    """Compiles and loads a text of C. Raises MachineError with what matters of what was said.

    ``log`` is where the compiler's or the verifier's whole log goes when they refuse.
    """

    def __init__(self, source: str, log: Path | None = None) -> None:
        provide_headers()
        bcc = import_bcc()
        with _captured() as said:
            try:
                self._bpf: Any = bcc.BPF(text=source.encode(), cflags=list(_ONCE))
                self.entries = {side: self._function(bcc, side.word) for side in Side}
                """Descriptors of what is attached to the two sides of a device."""
                stages = [self._function(bcc, name) for name in STAGES]
            except Exception as e:  # BCC raises bare Exceptions
                raise MachineError(_refusal(str(e), said(), log)) from e
        for number, descriptor in enumerate(stages):
            self._bpf[b"programs"][ctypes.c_int(number)] = ctypes.c_int(descriptor)

    def __enter__(self) -> Self:
        """Return it, to be closed at the end."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Free what the compiler holds, and all descriptors; what is attached or pinned stays."""
        atexit.unregister(self._bpf.cleanup)  # which would keep all of it
        self._bpf.cleanup()

    def map(self, name: str) -> BpfMap:
        """Return one of its maps. Raises KeyError."""
        return BpfMap(name, self._bpf[name.encode()].map_fd)

    def _function(self, bcc: Any, name: str) -> int:
        return int(self._bpf.load_func(f"nfparity_{name}".encode(), bcc.BPF.SCHED_CLS).fd)


def _refusal(error: str, said: str, log: Path | None) -> str:
    text = f"the tc program does not load: {shorten(error, said)}"
    if log is None:
        return text
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"{error}\n{said}", errors="replace")
    except OSError as e:
        return f"{text}\n(the whole log cannot be kept in {log}: {e.strerror})"
    return f"{text}\n(the whole log is in {log})"


@contextmanager
def _captured() -> Iterator[Any]:
    """Keep what the compiler and the verifier print on stderr out of the report, and give it."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)

        def said() -> str:
            file.seek(0)
            return file.read().decode(errors="replace")

        try:
            yield said
        finally:
            os.dup2(kept, 2)
            os.close(kept)
