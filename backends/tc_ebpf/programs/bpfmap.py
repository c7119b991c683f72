"""A BPF map, whose entries are read and written as bytes, many in one system call."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Self

from backends.tc_ebpf.programs import bpfcall
from translate.errors import MachineError

__all__ = ["BpfMap", "wait_for_readers"]

_MEMBARRIER: Final = {"x86_64": 324, "aarch64": 283}
_MEMBARRIER_CMD_GLOBAL: Final = 1
_HASHES: Final = frozenset({1, 9})
_ARRAYS: Final = frozenset({2, 6})
_PER_CPU: Final = frozenset({5, 6, 10})
_FIRST_BATCH: Final = 256
_LARGEST_BATCH: Final = 8192


class BpfMap:
    """One map. Methods raise MachineError with the kernel's message, RuntimeError for wrong sizes."""

    def __init__(self, name: str, descriptor: int) -> None:
        self.name = name
        self.descriptor = descriptor
        try:
            self.info = bpfcall.map_info(descriptor)
        except OSError as e:
            raise MachineError(f"cannot read the properties of the map {name}: {e.strerror}") from e
        copies = possible_cpus() if self.info.kind in _PER_CPU else 1
        self._sizes = (self.info.key_size, self.info.value_size)
        self._width = (self.info.value_size + 7) // 8 * 8 * copies if copies > 1 else self.info.value_size

    @classmethod
    def pinned(cls, path: Path) -> Self:
        """Open a pinned map. Raises MachineError, FileNotFoundError if it does not exist."""
        try:
            return cls(path.name, bpfcall.open_pinned(path))
        except FileNotFoundError:
            raise
        except OSError as e:
            raise MachineError(f"cannot open {path}: {e.strerror}") from e

    def close(self) -> None:
        """Close the descriptor; only for the code that opened it."""
        os.close(self.descriptor)

    def update(self, entries: Sequence[tuple[bytes, bytes]]) -> None:
        """Write entries; those before a refused one are kept (``BPF_MAP_UPDATE_BATCH``)."""
        if not entries:
            return
        for key, value in entries:
            if (len(key), len(value)) != self._sizes:
                raise RuntimeError(f"{self.name} has {self._sizes} bytes, not {len(key), len(value)}")
        keys, values = (b"".join(part) for part in zip(*entries, strict=True))
        try:
            bpfcall.update_batch(self.descriptor, keys, values, len(entries))
        except OSError as e:
            raise MachineError(
                f"the map {self.name} refuses some of {len(entries)} entries: {e.strerror}"
            ) from e

    def delete(self, keys: Sequence[bytes]) -> None:
        """Delete existing entries (``BPF_MAP_DELETE_BATCH``)."""
        if not keys:
            return
        for key in keys:
            if len(key) != self._sizes[0]:
                raise RuntimeError(f"keys of {self.name} have {self._sizes[0]} bytes, not {len(key)}")
        try:
            bpfcall.delete_batch(self.descriptor, b"".join(keys), len(keys))
        except OSError as e:
            raise MachineError(f"the map {self.name} lacks some of {len(keys)} keys: {e.strerror}") from e

    def clear(self) -> None:
        """Delete all entries. Nothing else may change the map at the same time."""
        self.delete([key for key, _ in self.entries()])

    def reset(self) -> None:
        """Make the map like a new one: empty, or full of zeros. Nothing else may use it at the same time."""
        if self.info.kind in _ARRAYS:
            keys = struct.pack(f"={self.info.max_entries}I", *range(self.info.max_entries))
            zeros = bytes(self._width * self.info.max_entries)
            bpfcall.update_batch(self.descriptor, keys, zeros, self.info.max_entries)
        else:
            self.clear()

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key; for a per-CPU map, the values of all CPUs in order."""
        return bpfcall.lookup(self.descriptor, key, self._width)

    def entries(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries. Entries that change meanwhile may be missing or be yielded twice."""
        yield from self._by_batch() if self.info.kind in _HASHES else self._one_by_one()

    def _one_by_one(self) -> Iterator[tuple[bytes, bytes]]:
        key = None
        while (key := bpfcall.next_key(self.descriptor, key, self.info.key_size)) is not None:
            value = self.get(key)
            if value is not None:
                yield key, value

    def _by_batch(self) -> Iterator[tuple[bytes, bytes]]:
        size, width, token, count, last = *self._sizes, None, _FIRST_BATCH, False
        while not last:
            try:
                token, keys, values, last = bpfcall.lookup_batch(self.descriptor, token, count, size, width)
            except OSError as e:
                if e.errno == _ENOSPC:
                    count *= 2  # a bucket has more
                    continue
                raise MachineError(f"cannot read the map {self.name}: {e.strerror}") from e
            for at in range(len(keys) // size):
                yield keys[at * size : (at + 1) * size], values[at * width : (at + 1) * width]
            count = max(count, min(count * 2, _LARGEST_BATCH))  # most maps of a test are nearly empty


_ENOSPC: Final = 28


def possible_cpus() -> int:
    """Return the number of values that a per-CPU map has for one key."""
    last = Path("/sys/devices/system/cpu/possible").read_text().strip().rpartition(",")[2]
    return int(last.rpartition("-")[2]) + 1


def wait_for_readers() -> None:
    """Wait until every packet that is in a program now has left it.

    ``membarrier(MEMBARRIER_CMD_GLOBAL)`` is ``synchronize_rcu`` with more than one CPU; with a single CPU,
    this process does not run while a program does. If the kernel lacks the system call, the function returns
    at once, and a packet between two lookups may miss the entry of the second one.
    """
    number = _MEMBARRIER.get(platform.machine())
    if number is not None:
        ctypes.CDLL(None).syscall(number, _MEMBARRIER_CMD_GLOBAL, 0, 0)
