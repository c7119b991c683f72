"""The accounting objects that the ``-m nfacct`` rules of a Program update."""

from __future__ import annotations

from translate.ir import Account, Origin, Program

__all__ = ["account_origins"]


def account_origins(program: Program) -> dict[str, Origin]:
    """Return the objects by name, each with the first rule that updates it."""
    first: dict[str, Origin] = {}
    for chain in program.chains:
        for statement in chain.statements:
            for test in statement.tests:
                if isinstance(test, Account):
                    first.setdefault(test.name, statement.origin)
    return first
