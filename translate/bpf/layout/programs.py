"""The programs of a translation, each entered by a tail call: their numbers and their entry functions in C.

Each program has its own BPF stack of 512 bytes and its own verifier limits, so the path of a packet is
divided among several. The first two are attached to the ingress and egress of a device; the map ``programs``
has the others, in this order.
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
"""The programs in the map ``programs``, in the order in which the loader enters them."""


def program_numbers() -> str:
    """Return ``enum program``, the indices of the programs in the map ``programs``."""
    return _lines("enum program {", *(f"\tPROGRAM_{name.upper()}," for name in PROGRAMS), "};")


def program_entries() -> str:
    """Return the entry functions of the programs, which take the packet's slot and call ``handle_NAME``."""
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
