"""The plain walk that records only the visits of some rules, for traces that need no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from backends.simulator.matching.conditions import Condition
from backends.simulator.matching.fields import View
from backends.simulator.walk.plain import PlainWalk
from backends.simulator.walk.prepare import PreparedChain, PreparedRule, PreparedTable
from translate.ir import TableName

__all__ = ["Watched", "WatchingWalk"]

Watched = Mapping[tuple[TableName, str], frozenset[int]]
"""The rules to watch, by table and chain: their indexes in the chain, from 0."""


@dataclass(slots=True)
class WatchingWalk(PlainWalk):
    """The plain walk through the rules that a packet may match and those that are watched.

    Rules that the index of their chain excludes are skipped, unless they are watched.
    """

    watched: Watched = field(default_factory=dict)

    def _rules(self, table: PreparedTable, chain: PreparedChain, view: View) -> Iterator[PreparedRule]:
        """Yield the rules of a chain that are visited."""
        if chain.index is None:
            return iter(chain.rules)
        places = chain.index.candidates(view)
        if watched := self.watched.get((table.name, chain.rules[0].chain)):
            places = sorted({*places, *watched})
        return iter([chain.rules[place] for place in places])

    def _record(self, table: PreparedTable, view: View, rule: PreparedRule, failed: Condition | None) -> None:
        watched = self.watched.get((table.name, rule.chain))
        if watched is not None and rule.number - 1 in watched:
            PlainWalk._record(self, table, view, rule, failed)  # super() fails in a slotted dataclass
