"""The programs of a translation, each entered by a tail call: their numbers and their entry functions in C.

Programs share the 512 bytes of a BPF stack and the verifier's limits only with themselves, so that the path
of a packet is divided among several. The first two are attached to the sides of a device; the map
``programs`` holds the others, in this order.
"""

from __future__ import annotations

from typing import Final

__all__ = ["PROGRAMS", "program_entries", "program_numbers"]

PROGRAMS: Final = (
    "track",
    "prerouting",
    "arrived",
    "input",
    "deliver",
    "output",
    "routed",
    "forward",
    "postrouting",
    "leave",
    "bind",
    "port",
    "sctp_verify",
    "sctp_sum",
    "reject",
    "answer",
)
"""The programs that ``programs`` jumps to; the loader puts them there in this order."""


def program_numbers() -> str:
    """Return ``enum program``, the places of the programs in the map ``programs``."""
    return _lines("enum program {", *(f"\tPROGRAM_{name.upper()}," for name in PROGRAMS), "};")


def program_entries() -> str:
    """Return the entry function of each program: it takes the packet's slot and calls ``handle_NAME``."""
    return "\n".join(
        _lines(
            f"int nfparity_{name}(struct __sk_buff *skb)",
            "{",
            "\tstruct pkt *p = slot_at(skb->cb[0]);",
            "",
            f"\treturn p ? handle_{name}(skb, p) : failed();",
            "}",
        )
        for name in PROGRAMS
    )


def _lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)
