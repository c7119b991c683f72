"""Gaps: refused rules that a translation leaves out at the user's request, each with a counter in its place.

A translation with gaps is not the ruleset: it is for reading, and for finding out what is left to do. Nothing
but ``nfparity translate --keep-going`` makes one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from translate.ir import Account, Origin, Rule, Ruleset

__all__ = ["leave_out"]


def leave_out(ruleset: Ruleset, gaps: Collection[Origin], *, bare: Collection[Origin] = ()) -> Ruleset:
    """Return the ruleset with a counter in the place of each rule that stands at one of ``gaps``.

    It counts the packets that pass the modelled tests of the rule. At one of ``bare`` it counts all that come
    there: some test is what was refused.
    """

    def counter(rule: Rule) -> Rule:
        tests = () if rule.origin in bare else rule.tests
        return Rule(
            tests=(*tests, Account(name=f"gap_line_{rule.origin.line}")), actions=(), origin=rule.origin
        )

    tables = []
    for table in ruleset.tables:
        chains = tuple(
            replace(chain, rules=tuple(counter(r) if r.origin in gaps else r for r in chain.rules))
            for chain in table.chains
        )
        tables.append(replace(table, chains=chains))
    return replace(ruleset, tables=tuple(tables))
