"""Gaps: refused rules that a translation leaves out at the user's request, each with a counter in its place.

A translation with gaps is not equivalent to the rules. It is made for reading, by
``nfparity translate --keep-going`` only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from translate.dataclass import replace
from translate.errors import Refusal, UnsupportedError
from translate.ir import Account, Origin, Rule, Ruleset

__all__ = ["leave_out", "translate_with_gaps"]

_Output = TypeVar("_Output")


def translate_with_gaps(
    ruleset: Ruleset, translate: Callable[[Ruleset], _Output]
) -> tuple[_Output, tuple[Refusal, ...]]:
    """Return the translation without the rules that ``translate`` refuses, and one refusal for each of them.

    Refused rules are replaced as in :func:`leave_out`, at first with all their tests. A rule that is refused
    again loses its tests too. The refusals are sorted by line.
    Raises UnsupportedError for a refusal that names no line, or that remains when the tests are gone.
    """
    gaps: dict[Origin, Refusal] = {}
    bare: set[Origin] = set()
    while True:
        try:
            output = translate(leave_out(ruleset, gaps, bare=bare))
        except UnsupportedError as error:
            refused = {refusal.origin: refusal for refusal in reversed(error.refusals)}
            if refused.keys() <= bare or not all(origin.line for origin in refused.keys() - bare):
                raise
            bare |= refused.keys() & gaps.keys()
            gaps = refused | gaps
        else:
            return output, tuple(sorted(gaps.values(), key=lambda refusal: refusal.origin.line))


def leave_out(ruleset: Ruleset, gaps: Collection[Origin], *, bare: Collection[Origin] = ()) -> Ruleset:
    """Return the ruleset with a counter in place of each rule whose origin is in ``gaps``.

    It counts the packets that pass the modelled tests of the rule. If the origin is in ``bare``, where a test
    was refused, it counts all packets that reach the rule.
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
