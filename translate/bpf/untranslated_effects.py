"""Effects that the tc program omits: LOG, NFLOG, AUDIT, TRACE, CHECKSUM, nfacct, an MSS, NPT's errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from translate.errors import Note
from translate.ir import (
    Audit,
    FillChecksum,
    LimitMss,
    Log,
    NfLog,
    Origin,
    Program,
    Trace,
    TranslatePrefix,
    alternatives,
)
from translate.passes.inventory import Inventory
from translate.passes.states import account_origins

__all__ = ["untranslated_effects"]

_BACKEND: Final = "tc-ebpf"


def untranslated_effects(inventory: Inventory) -> tuple[Note, ...]:
    """Return a note for each accounting object, and for each rule with another effect that is omitted."""
    counts = (
        Note(origin, _BACKEND, "nfacct", f"the tc program does not count in the nfacct object {name}")
        for name, origin in account_origins(inventory).items()
    )
    others = (
        Note(origin, _BACKEND, feature, f"the tc program does not {does}")
        for feature, does, origin in _left_out(inventory.program)
    )
    return (*counts, *dict.fromkeys(others))


def _left_out(program: Program) -> Iterator[tuple[str, str, Origin]]:
    """Yield the feature of each rule with such an effect, the effect in words, and the rule's origin."""
    for chain in program.chains:
        for statement in chain.statements:
            for each in alternatives(statement):
                for action in each.actions:
                    match action:
                        case Log() | NfLog():
                            yield "log", "log", each.origin
                        case Audit():
                            yield "audit", "write audit records", each.origin
                        case Trace():
                            yield "trace", "trace", each.origin
                        case FillChecksum():
                            does = "compute a checksum that was left to the network card"
                            yield "checksum", does, each.origin
                        case LimitMss():
                            does = "add an MSS to a SYN without one; TCPMSS adds 536 at most (IPv6: 1220)"
                            yield "tcpmss", does, each.origin
                        case TranslatePrefix(bits=bits) if bits > 48:
                            does = "report that it drops a packet whose last four words are 0xffff"
                            yield "npt", does, each.origin
                        case _:
                            pass
