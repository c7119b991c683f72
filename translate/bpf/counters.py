"""The counters of uncommon events in the tc program, summed per CPU."""

from __future__ import annotations

from typing import Final

__all__ = ["COUNTERS", "counter_numbers"]

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
"""Descriptions of the counted events by name, in the order of ``enum counter``."""


def counter_numbers() -> str:
    """Return ``enum counter``, the indices of the counters in the map ``counters``."""
    lines = (
        f"\tCOUNT_{name.upper().replace('-', '_')}, /* {meaning} */\n" for name, meaning in COUNTERS.items()
    )
    return f"enum counter {{\n{''.join(lines)}}};\n"
