"""The programs of a translation, each entered by a tail call: their numbers and their entry functions in C.

Each program has its own BPF stack of 512 bytes and its own verifier limits, so the path of a packet is
divided among several. Two are attached to the ingress and egress of a device; the map ``programs`` has the
others.

A program is compiled in two units. The runtime has the functions that run no chain, and is the same text for
nearly all rulesets, so it is seldom compiled. Macros tell which functions a unit has.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import Final

__all__ = [
    "FUNCTIONS",
    "PROGRAMS",
    "Group",
    "function_name",
    "group_macros",
    "program_entries",
    "program_numbers",
]

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

_DEVICES: Final = ("ingress", "egress")
_RAW: Final = (*_DEVICES, "answer")
_HOOKS: Final = ("prerouting", "input", "output", "routed", "forward", "postrouting")


class Group(Enum):
    """Programs that are compiled together; the value is the macro that is 1 where they are compiled."""

    RAW = "COMPILES_RAW"
    """Those that run the chains of table raw."""
    HOOKS = "COMPILES_HOOKS"
    """Those that run the chains of all other tables."""
    RUNTIME = "COMPILES_RUNTIME"
    """Those that run no chain."""

    @property
    def programs(self) -> tuple[str, ...]:
        """The names of the programs."""
        match self:
            case Group.RAW:
                return _RAW
            case Group.HOOKS:
                return _HOOKS
            case Group.RUNTIME:
                return tuple(name for name in PROGRAMS if name not in (*_HOOKS, *_RAW))


def function_name(program: str) -> str:
    """Return the name of a program's entry function in C."""
    return f"nfparity_{program}"


FUNCTIONS: Final = tuple(map(function_name, (*_DEVICES, *PROGRAMS)))
"""The entry functions of all programs."""


def group_macros(groups: Collection[Group]) -> str:
    """Return the macros of a unit that has these groups of programs."""
    return "".join(f"#define {group.value} {int(group in groups)}\n" for group in Group)


def program_numbers() -> str:
    """Return ``enum program``, the indices of the programs in the map ``programs``."""
    return _lines("enum program {", *(f"\tPROGRAM_{name.upper()}," for name in PROGRAMS), "};")


def program_entries() -> str:
    """Return the entry functions of the programs, which take the packet's slot and call ``handle_NAME``."""
    return "\n".join(
        _lines(f"#if {group.value}", *(_entry(name) for name in group.programs if name in PROGRAMS), "#endif")
        for group in Group
    )


def _entry(name: str) -> str:
    return "\n".join(
        (
            f"int {function_name(name)}(struct __sk_buff *skb)",
            "{",
            "\tstruct pkt *p = slot_at(skb->cb[0]);",
            "",
            f"\treturn p ? handle_{name}(skb, p) : failed();",
            "}",
        )
    )


def _lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)
