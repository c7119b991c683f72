"""The counters of uncommon events in the tc program, one of each per CPU."""

from __future__ import annotations

from typing import Final

__all__ = ["COUNTERS", "counter_numbers"]

COUNTERS: Final = {
    "entered": "connections entered",
    "evicted": "replies whose connection had been evicted from a full map",
    "regained": "connections whose missing reply tuple was entered again",
    "ousted": "connections removed because another one had taken their reply tuple",
    "retried": "ports that another connection took just before confirmation",
    "long-search": "searches for a free port in which the first 128 ports were taken",
    "rejected": "packets answered with the error of a REJECT rule",
    "no-port": "packets dropped because no free port was found",
    "clash": "packets dropped because another connection had one of their tuples at confirmation",
    "fragment": "packets dropped because they were fragments",
    "malformed": "packets dropped because their headers could not be read",
    "lost-slot": "packets dropped because their saved state had been overwritten for another packet",
    "failed": "packets dropped because a function of the kernel failed",
}
"""Descriptions of the counted events by name, in the order of ``enum counter``."""


def counter_numbers() -> str:
    """Return ``enum counter``, the indices of the counters in the map ``counters``."""
    lines = (
        f"\tCOUNT_{name.upper().replace('-', '_')}, /* {meaning} */\n" for name, meaning in COUNTERS.items()
    )
    return f"enum counter {{\n{''.join(lines)}}};\n"
