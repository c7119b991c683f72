"""The plain walk without the rules that a chain's index excludes, for traces that need only matches."""

from __future__ import annotations

from collections.abc import Iterator

from backends.simulator.matching.view import View
from backends.simulator.trace import AlikeRules, RulesSkipped
from backends.simulator.walk.index import ChainIndex
from backends.simulator.walk.plain import PlainWalk
from backends.simulator.walk.prepare import PreparedChain, PreparedRule, PreparedTable
from translate.dataclass import dataclass

__all__ = ["IndexedWalk"]


@dataclass(slots=True)
class IndexedWalk(PlainWalk):
    """The plain walk that records each series of rules which cannot match as one event."""

    def _rules(self, table: PreparedTable, chain: PreparedChain, view: View) -> Iterator[PreparedRule]:
        """Yield the rules of a chain that are visited: those that the packet may match."""
        index = chain.index
        return iter(chain.rules) if index is None else self._candidates(table, chain, index, view)

    def _candidates(
        self, table: PreparedTable, chain: PreparedChain, index: ChainIndex, view: View
    ) -> Iterator[PreparedRule]:
        behind = 0
        for place in (*index.candidates(view), len(chain.rules)):
            if place > behind:
                self.recorder.add(
                    RulesSkipped(
                        table=table.name,
                        hook=view.hook,
                        chain=chain.rules[0].chain,
                        first=behind + 1,
                        last=place,
                        failed=tuple([(rules, self._failed(chain, rules, view)) for rules in index.alike]),
                        mark=view.skb.mark,
                        answer=self.recorder.answer,
                    )
                )
            if place < len(chain.rules):
                yield chain.rules[place]
            behind = place + 1

    def _failed(self, chain: PreparedChain, rules: AlikeRules, view: View) -> int:
        """Return the position of the first test that fails in skipped rules.

        The tests before the filed one only compare, so evaluating them has no effect.
        """
        before = chain.rules[rules.positions[0]].conditions[: rules.side]
        return next((i for i, holds in enumerate(before) if not holds(view, self.memory)), rules.side)
