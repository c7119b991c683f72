"""Upper bounds for the number of rules that one packet can meet."""

from __future__ import annotations

from collections.abc import Iterator

from translate.ir.ruleset import Chain, Ruleset, Table

__all__ = ["longest_walk"]


def longest_walk(ruleset: Ruleset) -> tuple[int, Chain | None]:
    """Return an upper bound of the number of rules that one packet visits at a hook, and the built-in chain.

    The bound assumes that every jump matches and that no rule ends the walk.
    """
    longest: tuple[int, Chain | None] = 0, None
    for table in ruleset.tables:
        visits: dict[str, int] = {}
        for chain in table.chains:
            if chain.hook is not None:
                longest = max(longest, (_visits(table, chain, visits), chain), key=lambda entry: entry[0])
    return longest


def _visits(table: Table, base: Chain, visits: dict[str, int]) -> int:
    """Return the number of rules that a packet visits from ``base`` on, memoised by chain in ``visits``."""
    pending = [base]
    while pending:
        chain = pending[-1]
        if chain.name not in visits:
            visits[chain.name] = 0  # ends the recursion in an unreachable chain that calls itself
            pending += [callee for callee in _callees(table, chain) if callee.name not in visits]
        else:
            pending.pop()
            below = sum(visits[callee.name] for callee in _callees(table, chain))
            visits[chain.name] = len(chain.rules) + below
    return visits[base.name]


def _callees(table: Table, chain: Chain) -> Iterator[Chain]:
    for rule in chain.rules:
        callee = None if rule.callee is None else table.chain(rule.callee)
        if callee is not None:
            yield callee
