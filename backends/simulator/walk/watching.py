"""The plain walk that records only the visits of some rules, for traces that need no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from backends.simulator.matching.conditions import Condition
from backends.simulator.matching.view import View
from backends.simulator.routing.path import LOOPBACK
from backends.simulator.walk.chainmemo import Decision
from backends.simulator.walk.plain import PlainWalk
from backends.simulator.walk.prepare import PreparedChain, PreparedRule, PreparedTable
from translate.dataclass import dataclass, field
from translate.ir import Accept, Drop, Hook, Policy, TableName

__all__ = ["Watched", "WatchedRulesPassed", "WatchingWalk"]

Watched = Mapping[tuple[TableName, str], frozenset[int]]
"""The rules to watch, by table and chain: their indexes in the chain, from 0."""

_HOOKS_LEFT: Final = {
    Hook.INPUT: frozenset({Hook.INPUT}),
    Hook.FORWARD: frozenset({Hook.FORWARD, Hook.POSTROUTING}),
    Hook.POSTROUTING: frozenset({Hook.POSTROUTING}),
}
"""The hooks that a packet can still pass, from a hook on, if it does not leave on ``lo``."""


class WatchedRulesPassed(Exception):  # noqa: N818  # it ends a run early, which is no error
    """The packet cannot come to a watched rule any more."""


@dataclass(slots=True)
class WatchingWalk(PlainWalk):
    """The plain walk through the rules that a packet may match and those that are watched.

    Rules that the index of their chain excludes are skipped, unless they are watched. ``hooks`` are those
    from which watched rules can be reached. In a flow of a single packet, other hooks at the end of its path,
    and answers of the node, are not walked; :class:`WatchedRulesPassed` is raised instead.
    """

    idle_tables: ClassVar[bool] = False

    watched: Watched = field(default_factory=dict)
    hooks: frozenset[Hook] = frozenset()
    single: bool = False
    """True for a flow of a single packet."""

    def table(self, table: PreparedTable, view: View) -> Decision:
        """Walk the built-in chain of ``table`` at the view's hook and return the decision."""
        if self.single and (self.recorder.answer or self._is_past(view)):
            raise WatchedRulesPassed
        start = table.chain(view.hook)
        decision = self._walk(table, start, view)
        if decision is not None:
            return decision
        return Accept() if start.policy is Policy.ACCEPT else Drop()

    def _is_past(self, view: View) -> bool:
        """Return whether the packet cannot come to a watched rule, here or later."""
        hooks_left = _HOOKS_LEFT.get(view.hook)
        return hooks_left is not None and view.oif != LOOPBACK and self.hooks.isdisjoint(hooks_left)

    def _rules(self, table: PreparedTable, chain: PreparedChain, view: View) -> Iterator[PreparedRule]:
        """Yield the rules of a chain that are visited."""
        if chain.index is None:
            return iter(chain.rules)
        places = chain.index.candidates(view)
        if watched := self.watched.get((table.name, chain.rules[0].chain)):
            places = sorted({*places, *watched})
        return iter([chain.rules[place] for place in places])

    def _record(
        self,
        table: PreparedTable,
        view: View,
        rule: PreparedRule,
        failed: Condition | None,
        *,
        dropped: bool = False,
    ) -> None:
        watched = self.watched.get((table.name, rule.chain))
        if watched is not None and rule.number - 1 in watched:
            PlainWalk._record(
                self, table, view, rule, failed, dropped=dropped
            )  # super() fails in a slotted dataclass
