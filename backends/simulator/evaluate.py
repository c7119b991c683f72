"""Evaluating a table's chain on a packet: tests, jumps, effects, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import length_hint
from typing import Final, assert_never

from backends.model.outcome import Assumption
from backends.simulator.chainmemo import ChainMemo, Decision
from backends.simulator.checkpoint import Checkpoint
from backends.simulator.conditions import Condition, Memory
from backends.simulator.effects import take_effect
from backends.simulator.fields import View
from backends.simulator.prepare import PreparedChain, PreparedRule, PreparedTable
from backends.simulator.trace import PolicyApplied, Recorder, RuleVisited
from translate.errors import InputError
from translate.ir import (
    Accept,
    Dnat,
    Drop,
    Goto,
    Jump,
    Masquerade,
    Policy,
    Redirect,
    Reject,
    Return,
    Snat,
    Test,
)

__all__ = ["Evaluator"]

_MOST_JUMPS: Final = 500_000
"""Of the packets of one flow: some seconds. The kernel has no such bound, and would walk on."""


def _never() -> bool:
    return False


def _always() -> bool:
    return True


@dataclass(slots=True)
class Evaluator:
    """``ipt_do_table`` over prepared tables, for one run."""

    memory: Memory
    recorder: Recorder
    jumps: int = 0
    """Jumps that the packets of a flow have made, on all ways that it can go."""

    def table(self, table: PreparedTable, view: View, kept: Callable[[], bool] = _never) -> Decision:
        """Walk the built-in chain of ``table`` at the view's hook and return what was decided.

        ``kept`` says whether a run can take off from a :class:`Checkpoint` in this walk.
        """
        chain = table.prepared.get(view.hook) or table.chain(view.hook)
        if chain.memo is None or self.recorder.enabled:
            decision = self._walk(table, view, [self._asked(chain, view)], kept)
        else:
            decision = self._remembered(table, chain, chain.memo, view)
        return self._end(table, view) if decision is None else decision

    def resume(self, start: Checkpoint) -> Decision:
        """Walk on from a checkpoint."""
        decision = self._walk(start.table, start.view, list(start.rest), _always)
        return self._end(start.table, start.view) if decision is None else decision

    def _end(self, table: PreparedTable, view: View) -> Decision:
        """What the policy decides about a packet that came to the end of the built-in chain."""
        policy = table.prepared[view.hook].policy
        if self.recorder.enabled:
            applied = PolicyApplied(
                table=table.name, hook=view.hook, policy=policy, answer=self.recorder.answer
            )
            self.recorder.add(applied)
        return _ACCEPT if policy is _ACCEPTING else _DROP

    def _asked(self, chain: PreparedChain, view: View) -> Sequence[PreparedRule]:
        """The rules of a chain that are asked: for a trace all, otherwise those that can match."""
        if chain.index is None or self.recorder.enabled:
            return chain.rules
        return [chain.rules[place] for place in chain.index.candidates(view)]

    def _remembered(
        self, table: PreparedTable, chain: PreparedChain, memo: ChainMemo, view: View
    ) -> Decision | None:
        """What comes of a chain, as of the last walk through it with such a packet."""
        skb, key = view.skb, memo.key(view)
        found = memo.known.get(key)
        if found is not None:
            decision, skb.mark = found
            return decision
        decision = self._walk(table, view, [self._asked(chain, view)], _never)
        memo.keep(key, decision, skb.mark)
        return decision

    def _walk(
        self,
        table: PreparedTable,
        view: View,
        chains: list[Sequence[PreparedRule]],
        kept: Callable[[], bool],
    ) -> Decision | None:
        """Ask the rules of ``chains``, the innermost last, until one decides; None when none does."""
        memory, skb, traced = self.memory, view.skb, self.recorder.enabled
        walks = [iter(rules) for rules in chains]
        while walks:
            for rule in walks[-1]:
                if rule.draws:
                    memory.chooser.here = partial(self._here, table, view, chains, walks, kept)
                for holds in rule.conditions:
                    if not holds(view, memory):
                        failed: Condition | None = holds
                        break
                else:
                    failed = None
                    if rule.effect is not None:
                        take_effect(rule.effect, skb)
                if rule.draws:
                    memory.chooser.here = None
                if traced:
                    self._record(table, view, rule, failed)
                action = rule.control
                if failed is not None or action is None:
                    continue
                match action:
                    case Jump() | Goto():
                        self.jumps += 1
                        if self.jumps > _MOST_JUMPS:
                            raise _endless(rule)
                        chain = table.prepared.get(action.chain) or table.chain(action.chain)
                        if chain.memo is not None and not traced:
                            decision = self._remembered(table, chain, chain.memo, view)
                            if decision is not None:
                                return decision
                            rules: Sequence[PreparedRule] = ()
                        else:
                            rules = self._asked(chain, view)
                        if isinstance(action, Goto):
                            del chains[-1], walks[-1]
                        elif not rules:
                            continue
                        chains.append(rules)
                        walks.append(iter(rules))
                    case Return():
                        del chains[-1], walks[-1]
                    case Accept() | Drop() | Reject() | Dnat() | Snat() | Masquerade() | Redirect():
                        return action
                    case _:
                        assert_never(action)
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
        kept: Callable[[], bool],
    ) -> Checkpoint | None:
        """The checkpoint before the rule whose turn it is."""
        if not (kept() and self.memory.is_blank()):
            return None
        left = [length_hint(walk) for walk in walks]
        left[-1] += 1
        rest = tuple([rules[len(rules) - n :] for rules, n in zip(chains, left, strict=True) if n])
        return Checkpoint(table, View(view.skb.split(), view.hook, view.iif, view.oif, view.router), rest)

    def _record(self, table: PreparedTable, view: View, rule: PreparedRule, failed: Condition | None) -> None:
        test: Test | Assumption | None = None
        if failed is not None:
            test = rule.tests[rule.conditions.index(failed)] or self.memory.assumptions.denied
        self.recorder.add(
            RuleVisited(
                table=table.name,
                hook=view.hook,
                chain=rule.chain,
                index=rule.number,
                rule=rule.rule,
                failed=test,
                mark=view.skb.mark,
                answer=self.recorder.answer,
            )
        )


def _endless(rule: PreparedRule) -> InputError:
    return InputError(
        f"{rule.rule.origin.place}: the packets of one flow jump more than {_MOST_JUMPS} times, and come here"
        " then; chains call each other many times over, and the kernel would walk all of it"
    )


_ACCEPTING = Policy.ACCEPT
_ACCEPT = Accept()
_DROP = Drop()
