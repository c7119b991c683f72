"""The structures of matches that only some programs have.

Most keep a state from packet to packet: lists, buckets, quotas and counts.
"""

from __future__ import annotations

from typing import Final

from translate.bpf.layout.numbers import SPIN_LOCK, U32, U64
from translate.bpf.layout.structures import Declarator, Structure

__all__ = ["SET_ELEMENT", "state_structures"]

SET_ELEMENT: Final = Structure(
    "set_element",
    (
        Declarator(U64, "ends", comment="as bpf_ktime_get_ns(); 0: never"),
        Declarator(U32, "member", comment="0: the element has `nomatch`"),
        Declarator(U32, "spare"),
    ),
    "The value of an ipset that rules change.",
)


def state_structures(wire: Structure, tuple_: Structure) -> tuple[Structure, ...]:
    """Return the structures of a family, from those of an address and of a tuple."""
    return (
        Structure(
            "recent_key",
            (
                Declarator(U32, "list"),
                Declarator(wire, "address"),
                Declarator(wire, "saddr", comment="zero, as the next members, unless they distinguish lists"),
                Declarator(wire, "daddr"),
                *(Declarator(U32, name) for name in ("proto", "sport", "dport")),
            ),
        ),
        Structure("turn", (Declarator(SPIN_LOCK, "lock"), Declarator(U32, "next"))),
        Structure(
            "bucket",
            (
                Declarator(SPIN_LOCK, "lock"),
                Declarator(U32, "spare"),
                Declarator(U64, "full", comment="when it is full again, as bpf_ktime_get_ns()"),
            ),
        ),
        Structure(
            "quota",
            (
                Declarator(SPIN_LOCK, "lock"),
                Declarator(U32, "ended", comment="a packet has exceeded it"),
                Declarator(U64, "used", comment="bytes"),
            ),
        ),
        Structure(
            "hash_key",
            (
                Declarator(U32, "table"),
                Declarator(wire, "saddr", comment="zero, as the next members, unless it is part of the key"),
                Declarator(wire, "daddr"),
                Declarator(U32, "ports", comment="source port << 16 | destination port"),
            ),
        ),
        Structure(
            "count_key",
            (Declarator(U32, "rule"), Declarator(wire, "address", comment="under the mask of the rule")),
        ),
        Structure(
            "counted",
            (
                Declarator(tuple_, "tuple"),
                Declarator(U64, "added", comment="when, as coarse_now(); 0: the place is free"),
                Declarator(U32, "cpu"),
                Declarator(U32, "spare"),
            ),
            "A connection in a list of `-m connlimit`.",
        ),
        Structure(
            "hash_bucket",
            (
                Declarator(U64, "full", comment="when it is full again, as bpf_ktime_get_ns()"),
                Declarator(U64, "used", comment="when the last packet came"),
            ),
        ),
        Structure(
            "hash_window",
            (
                Declarator(U64, "begun", comment="as bpf_ktime_get_ns()"),
                Declarator(U64, "used", comment="when the last packet came"),
                Declarator(U64, "packets"),
                Declarator(U32, "closed", comment="too many packets came in the window before"),
                Declarator(U32, "spare"),
            ),
        ),
        Structure(
            "way_key",
            (
                Declarator(U32, "length", comment="at least 32, because the row is always compared"),
                Declarator(U32, "row", comment="a device, 0: all of them; ROW_LOCAL: the local table"),
                Declarator(wire, "address"),
            ),
        ),
        Structure(
            "way_back",
            (
                Declarator(U32, "type", comment="RTN_* of the first route of the row"),
                Declarator(U32, "length", comment="of its prefix"),
            ),
        ),
    )
