"""Rules that write into a packet what conntrack says of it, so that the bytes that leave tell it."""

from __future__ import annotations

from typing import Final

from translate.ir import Family

__all__ = ["ESTABLISHED", "INVALID", "NEW", "RELATED", "STATE_RULES", "state_of", "tos_of"]

NEW, ESTABLISHED, RELATED, INVALID = range(1, 5)
STATE_RULES: Final = (
    "*mangle",
    ":FORWARD ACCEPT [0:0]",
    *(
        f"-A FORWARD -m conntrack --ctstate {state} -j TOS --set-tos {number << 2}/0x1c"
        for number, state in enumerate(("NEW", "ESTABLISHED", "RELATED", "INVALID"), 1)
    ),
    "-A FORWARD -m conntrack --ctstatus SEEN_REPLY -j TOS --set-tos 0x20/0x20",
    "-A FORWARD -m conntrack --ctstatus ASSURED -j TOS --set-tos 0x40/0x40",
    "-A FORWARD -m conntrack --ctdir ORIGINAL -j TOS --set-tos 0x80/0x80",
    "COMMIT",
)
"""The state goes into bits 2 to 4 of the TOS, the status and the direction into the bits above."""


def tos_of(family: Family, data: bytes) -> int:
    """Return the TOS or traffic class of a packet."""
    word = int.from_bytes(data[:2], "big")
    return word & 0xFF if family is Family.IP else word >> 4 & 0xFF


def state_of(family: Family, data: bytes) -> int:
    """Return the state that the rules wrote into a packet."""
    return tos_of(family, data) >> 2 & 7
