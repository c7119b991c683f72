"""The maps of a loaded program by descriptor, many entries in one system call.

What BCC makes of numbers of 128 bits in Python has another size than in C, so keys and values are bytes.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterator, Sequence
from typing import Any, Final

from backends.kernel.tc_ebpf.bcc import import_bcc
from translate.errors import MachineError

__all__ = ["BpfMap", "wait_for_readers"]

_MEMBARRIER: Final = {"x86_64": 324, "aarch64": 283}
_MEMBARRIER_CMD_GLOBAL: Final = 1


class BpfMap:
    """One map. Methods raise MachineError with what the kernel said, RuntimeError for wrong sizes."""

    def __init__(self, name: str, descriptor: int, sizes: tuple[int, int]) -> None:
        self._name = name
        self._lib = import_bcc().libbcc.lib
        self._fd = descriptor
        self._sizes = sizes

    @classmethod
    def of(cls, program: Any, name: str) -> BpfMap:
        """Return a map of a program that BCC has loaded. Raises KeyError."""
        table = program[name.encode()]
        module, number = ctypes.c_void_p(program.module), ctypes.c_size_t(table.map_id)
        lib = import_bcc().libbcc.lib
        sizes = lib.bpf_table_key_size_id(module, number), lib.bpf_table_leaf_size_id(module, number)
        return cls(name, table.map_fd, sizes)

    def clear(self) -> None:
        """Delete what is in the map, while nobody changes it."""
        self.delete([key for key, _ in self.entries()])

    def update(self, entries: Sequence[tuple[bytes, bytes]]) -> None:
        """Write entries, each at once; those before one that is refused stay (``BPF_MAP_UPDATE_BATCH``)."""
        for key, value in entries:
            if (len(key), len(value)) != self._sizes:
                raise RuntimeError(f"{self._name} has {self._sizes} bytes, not {len(key), len(value)}")
        keys, values = (b"".join(part) for part in zip(*entries, strict=True)) if entries else (b"", b"")
        self._batch(self._lib.bpf_update_batch, len(entries), keys, values)

    def delete(self, keys: Sequence[bytes]) -> None:
        """Delete entries, all of which are there (``BPF_MAP_DELETE_BATCH``)."""
        for key in keys:
            if len(key) != self._sizes[0]:
                raise RuntimeError(f"keys of {self._name} have {self._sizes[0]} bytes, not {len(key)}")
        self._batch(self._lib.bpf_delete_batch, len(keys), b"".join(keys))

    def entries(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield what is in the map, while nobody changes it."""
        size, width = self._sizes
        key, following, value = (ctypes.create_string_buffer(n) for n in (size, size, width))
        at = None
        while not self._lib.bpf_get_next_key(self._fd, at, following):
            key.raw = following.raw
            at = key
            if not self._lib.bpf_lookup_elem(self._fd, key, value):
                yield key.raw, value.raw

    def _batch(self, call: Any, count: int, *arrays: bytes) -> None:
        if not count:
            return
        done = ctypes.c_uint32(count)
        if call(ctypes.c_int(self._fd), *map(ctypes.c_char_p, arrays), ctypes.byref(done)):
            error = os.strerror(ctypes.get_errno())
            raise MachineError(f"the map {self._name} takes {done.value} of {count} changes: {error}")


def wait_for_readers() -> None:
    """Return once every packet that is in a program now has left it.

    ``membarrier(MEMBARRIER_CMD_GLOBAL)`` is ``synchronize_rcu`` where there is more than one CPU; with one,
    no program is interrupted by this one. Where the call is not known, nothing is waited for: a packet
    between two lookups may then find the second one's entry gone.
    """
    number = _MEMBARRIER.get(platform.machine())
    if number is not None:
        ctypes.CDLL(None).syscall(number, _MEMBARRIER_CMD_GLOBAL, 0, 0)
