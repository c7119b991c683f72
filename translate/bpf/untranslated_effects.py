"""Effects of rules that the tc program omits: LOG, NFLOG, AUDIT, TRACE and nfacct."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from translate.errors import Note
from translate.ir import Audit, Log, NfLog, Origin, Program, Trace, alternatives
from translate.passes.accounts import account_origins

__all__ = ["untranslated_effects"]

_BACKEND: Final = "tc-ebpf"


def untranslated_effects(program: Program) -> tuple[Note, ...]:
    """Return a note for each accounting object, and for each rule that logs."""
    counts = (
        Note(origin, _BACKEND, "nfacct", f"the tc program does not count in the nfacct object {name}")
        for name, origin in account_origins(program).items()
    )
    logs = (
        Note(origin, _BACKEND, feature, f"the tc program does not {does}")
        for feature, does, origin in _logging(program)
    )
    return (*counts, *dict.fromkeys(logs))


def _logging(program: Program) -> Iterator[tuple[str, str, Origin]]:
    """Yield the feature of each rule that reports packets, the report in words, and the rule's origin."""
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
                        case _:
                            pass
