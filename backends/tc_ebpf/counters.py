"""The values of the tc program's counters of uncommon events."""

from __future__ import annotations

import struct
import sys

from backends.tc_ebpf.programs.bpfmap import BpfMap
from translate.bpf import COUNTERS

__all__ = ["read_counters"]


def read_counters(counters: BpfMap) -> dict[str, int]:
    """Return every counter, summed over CPUs. Raises MachineError."""
    counted = {}
    for number, name in enumerate(COUNTERS):
        values = counters.get(struct.pack("=I", number)) or b""
        counted[name] = sum(
            int.from_bytes(values[i : i + 8], sys.byteorder) for i in range(0, len(values), 8)
        )
    return counted
