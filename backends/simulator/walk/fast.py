"""The fast walk through a table: the decisions of the plain walk, without visiting every rule.

It saves work in three ways; each module explains why the result is the same:
:mod:`~backends.simulator.walk.index` skips rules that cannot match, :mod:`~backends.simulator.walk.chainmemo`
returns the decision of a chain about an earlier equal packet, and :mod:`~backends.simulator.walk.checkpoint`
lets another branch of the flow start at its draw. It records no events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import length_hint
from typing import ClassVar

from backends.simulator.chance.chooser import Chooser
from backends.simulator.matching.memory import Memory
from backends.simulator.matching.view import HotDrop, View
from backends.simulator.walk.chainmemo import ChainMemo, Decision
from backends.simulator.walk.checkpoint import Checkpoint
from backends.simulator.walk.effects import take_effect
from backends.simulator.walk.plain import Jumps
from backends.simulator.walk.prepare import PreparedChain, PreparedRule, PreparedTable
from translate.dataclass import dataclass, field
from translate.ir import (
    Accept,
    Drop,
    Goto,
    Jump,
    Policy,
    Return,
)

__all__ = ["FastWalk"]

# Module names, because an attribute of an Enum is looked up each time.
_ACCEPTING = Policy.ACCEPT
_ACCEPT = Accept()
_DROP = Drop()


def _never() -> bool:
    return False


def _always() -> bool:
    return True


@dataclass(slots=True)
class FastWalk:
    """The fast walk (``ipt_do_table``) for one run, with the random numbers of ``chooser``."""

    idle_tables: ClassVar[bool] = False

    memory: Memory
    chooser: Chooser[Checkpoint]
    jumps: Jumps = field(default_factory=Jumps)

    def table(self, table: PreparedTable, view: View, can_split: Callable[[], bool] = _never) -> Decision:
        """Walk the built-in chain of ``table`` at the view's hook and return the decision.

        ``can_split`` returns whether another branch can start from a :class:`Checkpoint` in this walk.
        """
        chain = table.prepared.get(view.hook) or table.chain(view.hook)
        if chain.memo is None:
            decision = self._walk(table, view, [_candidates(chain, view)], can_split)
        else:
            decision = self._remembered(table, chain, chain.memo, view)
        return _by_policy(chain) if decision is None else decision

    def resume(self, start: Checkpoint) -> Decision:
        """Continue a walk from a checkpoint and return the decision."""
        decision = self._walk(start.table, start.view, list(start.rest), _always)
        return _by_policy(start.table.prepared[start.view.hook]) if decision is None else decision

    def _remembered(
        self, table: PreparedTable, chain: PreparedChain, memo: ChainMemo, view: View
    ) -> Decision | None:
        """Return the decision of a chain, from its memo if an equal packet was there before."""
        skb, key = view.skb, memo.key(view)
        result = memo.results.get(key)
        if result is not None:
            decision, skb.mark = result
            return decision
        decision = self._walk(table, view, [_candidates(chain, view)], _never)
        memo.keep(key, decision, skb.mark)
        return decision

    def _walk(
        self,
        table: PreparedTable,
        view: View,
        chains: list[Sequence[PreparedRule]],
        can_split: Callable[[], bool],
    ) -> Decision | None:
        """Visit the rules of ``chains``, the innermost last, until one decides; return None if none does."""
        try:
            return self._visit(table, view, chains, can_split)
        except HotDrop:
            return _DROP
        finally:
            self.chooser.here = None

    def _visit(
        self,
        table: PreparedTable,
        view: View,
        chains: list[Sequence[PreparedRule]],
        can_split: Callable[[], bool],
    ) -> Decision | None:
        memory, chooser = self.memory, self.chooser
        walks = [iter(rules) for rules in chains]
        here = partial(self._here, table, view, chains, walks, can_split)
        while walks:
            for rule in walks[-1]:
                chooser.here = here if rule.draws else None
                for holds in rule.conditions:
                    if not holds(view, memory):
                        break
                else:
                    if rule.effect is not None:
                        take_effect(rule.effect, view)
                    match rule.control:
                        case None:
                            continue
                        case Jump() | Goto() as action:
                            self.jumps.add(rule)
                            chain = table.prepared.get(action.chain) or table.chain(action.chain)
                            if chain.memo is not None:
                                decision = self._remembered(table, chain, chain.memo, view)
                                if decision is not None:
                                    return decision
                                rules: Sequence[PreparedRule] = ()
                            else:
                                rules = _candidates(chain, view)
                            if isinstance(action, Goto):
                                del chains[-1], walks[-1]
                            elif not rules:
                                continue
                            chains.append(rules)
                            walks.append(iter(rules))
                        case Return():
                            del chains[-1], walks[-1]
                        case decision:
                            return decision
                    break
            else:
                del chains[-1], walks[-1]
        return None

    def _here(
        self,
        table: PreparedTable,
        view: View,
        chains: Sequence[Sequence[PreparedRule]],
        walks: Sequence[Iterator[PreparedRule]],
        can_split: Callable[[], bool],
    ) -> Checkpoint | None:
        """Return a checkpoint before the present rule."""
        if not (can_split() and self.memory.is_blank()):
            return None
        remaining = [length_hint(walk) for walk in walks]
        remaining[-1] += 1
        rest = tuple([rules[len(rules) - n :] for rules, n in zip(chains, remaining, strict=True) if n])
        return Checkpoint(table, View(view.skb.split(), view.hook, view.iif, view.oif, view.router), rest)


def _by_policy(chain: PreparedChain) -> Decision:
    """Return the decision of a built-in chain's policy."""
    return _ACCEPT if chain.policy is _ACCEPTING else _DROP


def _candidates(chain: PreparedChain, view: View) -> Sequence[PreparedRule]:
    """Return the rules of a chain that the packet may match."""
    if chain.index is None:
        return chain.rules
    return [chain.rules[place] for place in chain.index.candidates(view)]
