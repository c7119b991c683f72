"""Effects of rules that the tc program does not have: LOG, NFLOG, AUDIT, TRACE and nfacct."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from translate.errors import Note
from translate.ir import Action, Apply, Audit, Choose, Log, Lookup, NfLog, Origin, Program, Statement, Trace
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
    """Yield the feature of each rule that reports packets, the report in words, and the rule's place."""
    for chain in program.chains:
        for statement in chain.statements:
            for actions, origin in _alternatives(statement):
                for action in actions:
                    match action:
                        case Log() | NfLog():
                            yield "log", "log", origin
                        case Audit():
                            yield "audit", "write audit records", origin
                        case Trace():
                            yield "trace", "trace", origin
                        case _:
                            pass


def _alternatives(statement: Statement) -> Iterator[tuple[tuple[Action, ...], Origin]]:
    match statement:
        case Apply():
            yield statement.actions, statement.origin
        case Lookup():
            yield from ((entry.actions, entry.origin) for entry in statement.entries)
        case Choose():
            yield from ((branch.actions, branch.origin) for branch in statement.branches)
