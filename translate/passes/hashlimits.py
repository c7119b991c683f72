"""The tables of token buckets that a Program's ``-m hashlimit`` rules share by name."""

from __future__ import annotations

from translate.ir import HashLimit, Origin, Program

__all__ = ["hash_tables"]


def hash_tables(program: Program) -> dict[str, tuple[HashLimit, Origin]]:
    """Return the tables by name, each with the first rule that takes from it."""
    by_name: dict[str, tuple[HashLimit, Origin]] = {}
    for chain in program.chains:
        for statement in chain.statements:
            for test in statement.tests:
                if isinstance(test, HashLimit):
                    by_name.setdefault(test.name, (test, statement.origin))
    return by_name
