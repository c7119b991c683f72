"""What the tc program counts out of the ordinary (``runtime/counters.h``)."""

from __future__ import annotations

import struct
import sys
from typing import Final

from backends.tc_ebpf.bpfmap import BpfMap

__all__ = ["COUNTERS", "read_counters"]

COUNTERS: Final = {
    "entered": "connections entered",
    "evicted": "replies that found their connection gone, because the maps were full",
    "regained": "connections whose reply's tuple was gone, and was entered again",
    "ousted": "connections forgotten because another one had their reply's tuple by then",
    "retried": "ports that another connection took just before confirmation, so that another one was tried",
    "long-search": "searches for a port that went on after 128 were taken",
    "rejected": "packets answered for REJECT",
    "no-port": "packets dropped because no port was found free",
    "clash": "packets dropped because another connection had one of their tuples at confirmation",
    "fragment": "packets dropped because they were fragments",
    "malformed": "packets dropped because their headers could not be read",
    "lost-slot": "packets dropped because what was kept of them had been reused for another packet",
    "failed": "packets dropped because the kernel refused something to the program",
}
"""By name, in the order of ``enum counter``: what is counted."""


def read_counters(counters: BpfMap) -> dict[str, int]:
    """Return every counter, summed over CPUs. Raises MachineError."""
    found = {}
    for number, name in enumerate(COUNTERS):
        values = counters.get(struct.pack("=I", number)) or b""
        found[name] = sum(int.from_bytes(values[i : i + 8], sys.byteorder) for i in range(0, len(values), 8))
    return found
