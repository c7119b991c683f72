"""The token buckets that a Program's rules take from."""

from __future__ import annotations

from translate.ir import Limit, Origin, Program

__all__ = ["buckets"]


def buckets(program: Program) -> dict[str, tuple[Limit, Origin]]:
    """Return the buckets by name, each with the first rule that takes from it."""
    by_name: dict[str, tuple[Limit, Origin]] = {}
    for chain in program.chains:
        for statement in chain.statements:
            for test in statement.tests:
                if isinstance(test, Limit):
                    by_name.setdefault(test.bucket, (test, statement.origin))
    return by_name
