"""How many rules one packet can meet, where chains call each other many times over."""

from __future__ import annotations

from collections.abc import Iterator

from translate.ir.actions import Goto, Jump
from translate.ir.ruleset import Chain, Ruleset, Table

__all__ = ["longest_walk"]


def longest_walk(ruleset: Ruleset) -> tuple[int, Chain | None]:
    """Return the most rules that a packet can meet from one built-in chain on, and that chain.

    A bound from above: as if every rule that jumps matched, and none ended the walk. Of a condensed ruleset
    the sample counts, in which chains call each other as in the whole.
    """
    tables = ruleset.tables if ruleset.families is None else ruleset.families.sample.tables
    found: tuple[int, Chain | None] = 0, None
    for table in tables:
        visits: dict[str, int] = {}
        for chain in table.chains:
            if chain.hook is not None:
                found = max(found, (_visits(table, chain, visits), chain), key=lambda one: one[0])
    return found


def _visits(table: Table, base: Chain, visits: dict[str, int]) -> int:
    """The rules met in ``base`` and below it; those of chains below are kept in ``visits``."""
    pending = [base]
    while pending:
        chain = pending[-1]
        if chain.name not in visits:
            visits[chain.name] = 0  # also where a chain that no packet comes to calls itself
            pending += [one for one in _callees(table, chain) if one.name not in visits]
        else:
            pending.pop()
            below = sum(visits[one.name] for one in _callees(table, chain))
            visits[chain.name] = len(chain.rules) + below
    return visits[base.name]


def _callees(table: Table, chain: Chain) -> Iterator[Chain]:
    for rule in chain.rules:
        for action in rule.actions:
            if isinstance(action, Jump | Goto):
                callee = table.chain(action.chain)
                if callee is not None:
                    yield callee
