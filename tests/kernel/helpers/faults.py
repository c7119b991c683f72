"""Faults of the disk and of tools at any operation of a migration: the operation fails, or the process is
killed.

Two modules write to the disk, by their ``os``. Two functions and one class read and change the kernel's
rules. All of these are replaced in a forked process. Operations are numbered in their order, so a run without
a fault shows how many there are.
"""

from __future__ import annotations

import errno
import mmap
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from backends.testbed.command import run
from backends.testbed.libnftables import NftHandle
from nfparity.migrate.state import owned, tables
from nfparity.persistent_state import disk, locking
from translate.errors import MachineError

FOR_EVER = 1 << 30


class Kind(StrEnum):
    NONE = "nothing"
    IN_TOOL = "killed while a tool runs"
    FULL = "disk full"
    BROKEN = "disk broken"
    TOOL = "tool fails"


@dataclass(frozen=True)
class Fault:
    """A failure of ``times`` operations, from number ``at`` on, also of those in the dead-man timer.

    ``kill``: at operation ``at`` the process is killed; with ``alone``, its timer is killed, too.
    """

    kind: Kind
    at: int
    times: int = FOR_EVER
    kill: bool = False
    alone: bool = False


_WRITES = {"makedirs": 0, "pwrite": 0, "fsync": 0, "replace": 1}
_OTHERS = ("unlink", "pread", "stat", "lstat")
_ERRNO = {Kind.FULL: errno.ENOSPC, Kind.BROKEN: errno.EIO}


class Faults:
    """Numbers operations and makes one fail; ``tell`` receives their names, in the process that created
    the object.
    """

    def __init__(self, fault: Fault | None, tell: Callable[[str], None], kill: Callable[[], None]) -> None:
        self._fault, self._tell, self._kill = fault, tell, kill
        self._pid = os.getpid()
        self._next = 0
        self._in_tool = False
        # Shared with the processes that are forked from this one.
        self._left = mmap.mmap(-1, 8)

    def install(self) -> None:
        disk.os = locking.os = _Disk(self)  # type: ignore[assignment,attr-defined]
        tables.run = owned.run = self._run  # type: ignore[attr-defined]
        faults = self

        class Handle(NftHandle):
            def run(self, text: str) -> str:
                if faults._happens("nft transaction", tool=True):
                    raise MachineError("injected")
                return super().run(text)

        owned.NftHandle = Handle  # type: ignore[attr-defined]

    def disk(self, name: str, *, writes: bool) -> None:
        """Raise OSError if the fault applies to this operation."""
        if self._happens(name, writes=writes):
            assert self._fault is not None
            raise OSError(_ERRNO[self._fault.kind], os.strerror(_ERRNO[self._fault.kind]))

    def _run(
        self, command: tuple[str, ...], *arguments: Any, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        if self._happens(command[0], tool=True):
            return subprocess.CompletedProcess(command, 1, "", "injected")
        if self._in_tool:
            command = ("sh", "-c", f'kill -KILL {os.getpid()}; exec "$@"', "sh", *command)
        return _run(command, *arguments, **more)

    def _happens(self, name: str, *, tool: bool = False, writes: bool = False) -> bool:
        fault = self._fault
        if os.getpid() == self._pid:
            self._tell(name)
            self._next += 1
            if fault is not None and self._next - 1 == fault.at:
                self._left[:] = fault.times.to_bytes(8, "little")
                if fault.kind is Kind.IN_TOOL:
                    self._in_tool = tool
                elif fault.kill:
                    self._kill()
        left = int.from_bytes(self._left[:], "little")
        if fault is None or not left:
            return False
        befalls = {Kind.TOOL: tool, Kind.FULL: writes, Kind.BROKEN: writes or name.startswith("unlink ")}.get(
            fault.kind, False
        )
        if befalls and left < FOR_EVER:
            self._left[:] = (left - 1).to_bytes(8, "little")
        return befalls


_run = run


class _Disk:
    """A replacement of the module ``os`` that passes each operation to ``faults`` first."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._names: dict[int, str] = {}

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name == "open":
            return self._open
        if name not in _WRITES and name not in _OTHERS:
            return real

        def call(*arguments: Any, **more: Any) -> Any:
            subject = arguments[_WRITES.get(name, 0)]
            what = self._names.get(subject, "") if isinstance(subject, int) else Path(subject).name
            self._faults.disk(f"{name} {what}", writes=name in _WRITES)
            return real(*arguments, **more)

        return call

    def _open(self, path: Path, flags: int, *mode: int) -> int:
        creates = bool(flags & os.O_CREAT) and not os.path.lexists(path)
        self._faults.disk(f"{'create' if creates else 'open'} {Path(path).name}", writes=creates)
        descriptor = os.open(path, flags, *mode)
        self._names[descriptor] = Path(path).name
        return descriptor
