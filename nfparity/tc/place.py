"""Paths of a network namespace's state: pins in bpffs, the record under ``/run``.

A namespace is identified by its inode, which may be reused, and by its cookie (``SO_NETNS_COOKIE``), which is
unique.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from backends.tc_ebpf.filters import Side
from backends.tc_ebpf.programs import bpfcall
from backends.tc_ebpf.programs.bpfmap import BpfMap
from nfparity.persistent_state.disk import remove
from nfparity.persistent_state.locking import file_lock
from nfparity.persistent_state.namespace import current_namespace
from translate.dataclass import dataclass, replace
from translate.errors import MachineError
from translate.ir import Family

__all__ = ["STATE", "DataplanePlace", "here"]

STATE: Final = frozenset(
    {"conns", "replies", "sources", "locks", "counters", "recents", "slots", "slot_counter", "gate"}
)
"""Maps that are kept when the program is replaced: the state of connections and of packets in transit."""

_BPFFS_MAGIC: Final = 0xCAFE4A11
_BPFFS: Final = Path("/sys/fs/bpf")
# Used if `ip netns exec` has mounted another /sys.
_BPFFS_OF_INIT: Final = Path("/proc/1/root/sys/fs/bpf")
_RUN: Final = Path("/run/nfparity/tc")


@dataclass(frozen=True, slots=True)
class DataplanePlace:
    """Paths of one family's dataplane in a network namespace. ``pins`` and ``folder`` may be missing."""

    family: Family
    cookie: int
    pins: Path
    """Contains ``state`` and numbered generations, each with a program and its other maps."""
    folder: Path
    """Contains the record and logs."""

    @property
    def record(self) -> Path:
        """The file of the record."""
        return self.folder / f"{self.family.value}.json"

    @property
    def other(self) -> DataplanePlace:
        """The place of the other family in the same namespace."""
        family = Family.IP6 if self.family is Family.IP else Family.IP
        return replace(self, family=family, pins=self.pins.with_name(family.value))

    def log(self, name: str) -> Path:
        """Return the path of a log."""
        return self.folder / f"{self.family.value}-{name}.log"

    def state(self, name: str) -> Path:
        """Return the pin of a map that outlives its program."""
        return self.pins / "state" / name

    def generation(self, number: int) -> Path:
        """Return the folder of a program's own maps."""
        return self.pins / str(number)

    def map(self, generation: int, name: str) -> BpfMap:
        """Open a pinned map. Raises FileNotFoundError, MachineError."""
        path = self.state(name) if name in STATE else self.generation(generation) / name
        return BpfMap.pinned(path)

    def has_map(self, generation: int, name: str) -> bool:
        """Return whether a program has a map of its own with this name."""
        return (self.generation(generation) / name).exists()

    def maps(self, generation: int) -> Iterator[Path]:
        """Yield the pins of all maps of a program."""
        for folder in (self.pins / "state", self.generation(generation)):
            if folder.is_dir():
                yield from sorted(p for p in folder.iterdir() if not p.name.startswith("entry_"))

    def entry(self, generation: int, side: Side) -> Path:
        """Return the pin of the program of one side."""
        return self.generation(generation) / f"entry_{side.word}"

    def open_entry(self, generation: int, side: Side) -> int:
        """Return a descriptor of a pinned program. Raises MachineError."""
        path = self.entry(generation, side)
        try:
            return bpfcall.open_pinned(path)
        except OSError as e:
            raise MachineError(f"cannot open {path}: {e.strerror}") from e

    def pin(self, path: Path, descriptor: int) -> None:
        """Pin a map or a program. Raises MachineError."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            bpfcall.pin(path, descriptor)
        except OSError as e:
            raise MachineError(f"cannot pin {path}: {e.strerror}") from e

    def unpin(self, keep: int | None = None) -> None:
        """Remove all pins, or with ``keep`` those of all other generations."""
        if not self.pins.is_dir():
            return
        for folder in self.pins.iterdir():
            if keep is None or folder.name not in ("state", str(keep)):
                shutil.rmtree(folder, ignore_errors=True)
        if keep is None:
            _prune(self.pins, 3)

    def forget(self, *, logs: bool = False) -> None:
        """Remove the record, and with ``logs`` the logs. Raises OSError."""
        remove(self.record)
        for log in self.folder.glob(f"{self.family.value}-*.log") if logs else ():
            remove(log)

    @contextmanager
    def locked(self, *, needed: bool = True) -> Iterator[None]:
        """Lock out other commands in this namespace.

        Waits for a running command, and for the guard of a killed one. Raises MachineError, also for an
        OSError in the block.
        """
        lock = self.folder / "lock"
        with file_lock(lock, inherit=False, needed=needed):
            try:
                yield
            except OSError as e:
                raise MachineError(f"the kernel refuses: {e}") from e
            finally:
                if not self.record.exists() and not self.other.record.exists():
                    with suppress(OSError):
                        remove(lock)
                    _prune(self.folder, 3)


def here(family: Family) -> DataplanePlace:
    """Return the place of the current network namespace. Raises MachineError without root."""
    namespace = current_namespace()
    number = str(namespace.inode)
    return DataplanePlace(
        family, namespace.cookie, _root() / "nfparity" / number / family.value, _RUN / number
    )


def _prune(folder: Path, levels: int) -> None:
    """Remove a folder and its parents while they are empty."""
    for _ in range(levels):
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


def _root() -> Path:
    for place in (_BPFFS, _BPFFS_OF_INIT):
        if _is_bpffs(place):
            return place
    if not _mounts_stay():
        raise MachineError(f"no bpf file system is mounted at {_BPFFS}: mount -t bpf bpf {_BPFFS}")
    # tc and bpftool do the same when they pin an object.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"bpf", os.fsencode(_BPFFS), b"bpf", ctypes.c_ulong(0), b"mode=0700"):
        reason = os.strerror(ctypes.get_errno())
        raise MachineError(f"cannot mount a bpf file system at {_BPFFS}: {reason} (CONFIG_BPF_SYSCALL)")
    return _BPFFS


def _mounts_stay() -> bool:
    """Return whether a mount made here outlives this command (False in ``ip netns exec``)."""
    own_namespace = os.stat("/proc/self/ns/mnt").st_ino
    for process in ("1", str(os.getppid())):
        try:
            return os.stat(f"/proc/{process}/ns/mnt").st_ino == own_namespace
        except OSError:
            continue  # root without CAP_SYS_PTRACE may not inspect init
    return True


def _is_bpffs(place: Path) -> bool:
    buffer = ctypes.create_string_buffer(256)
    if ctypes.CDLL(None).statfs(os.fsencode(place), buffer):
        return False
    return int(struct.unpack_from("=Q", buffer)[0]) == _BPFFS_MAGIC
