"""Evaluating a table's chain on a packet: tests, jumps, effects, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from backends.simulator.conditions import Memory
from backends.simulator.effects import EFFECTS, take_effect
from backends.simulator.fields import View
from backends.simulator.prepare import PreparedChain, PreparedRule, PreparedTable
from backends.simulator.trace import PolicyApplied, Recorder, RuleVisited
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
)

__all__ = ["Decision", "Evaluator"]

Decision = Accept | Drop | Reject | Dnat | Snat | Masquerade | Redirect
"""What ends a table's walk: a verdict, or a NAT target, which accepts once it has bound."""

Control = Jump | Goto | Return | Decision
"""What a matching rule says about where to go on."""


@dataclass(slots=True)
class Evaluator:
    """``ipt_do_table`` over prepared tables, for one run."""

    memory: Memory
    recorder: Recorder

    def table(self, table: PreparedTable, view: View) -> Decision:
        """Walk the built-in chain of ``table`` at the view's hook and return what was decided."""
        walk = self._matching(table, table.chain(view.hook), view)
        back: list[Iterator[Control]] = []
        while True:
            action = next(walk, None)
            if action is None:
                if not back:
                    break
                walk = back.pop()
                continue
            match action:
                case Jump():
                    back.append(walk)
                    walk = self._matching(table, table.chain(action.chain), view)
                case Goto():
                    walk = self._matching(table, table.chain(action.chain), view)
                case Return():
                    if not back:
                        break
                    walk = back.pop()
                case Accept() | Drop() | Reject() | Dnat() | Snat() | Masquerade() | Redirect():
                    return action
                case _:
                    assert_never(action)
        policy = table.policy(view.hook)
        if self.recorder.enabled:
            applied = PolicyApplied(
                table=table.name, hook=view.hook, policy=policy, answer=self.recorder.answer
            )
            self.recorder.add(applied)
        return Accept() if policy is Policy.ACCEPT else Drop()

    def _matching(self, table: PreparedTable, chain: PreparedChain, view: View) -> Iterator[Control]:
        """Go through a chain, with what its rules do to the packet; yield what says where to go on.

        A trace tells of every rule; without one, those that cannot match are not asked.
        """
        memory, traced = self.memory, self.recorder.enabled
        for rule in chain.rules if traced else chain.met_by(view):
            failed = None
            for index, holds in enumerate(rule.conditions):
                if not holds(view, memory):
                    failed = index
                    break
            action = rule.action if failed is None else None
            if isinstance(action, EFFECTS):
                take_effect(action, view.skb)
            if traced:
                self._record(table, view, rule, failed)
            if not (action is None or isinstance(action, EFFECTS)):
                yield action

    def _record(self, table: PreparedTable, view: View, rule: PreparedRule, failed: int | None) -> None:
        self.recorder.add(
            RuleVisited(
                table=table.name,
                hook=view.hook,
                chain=rule.chain,
                index=rule.number,
                rule=rule.rule,
                failed=None if failed is None else rule.tests[failed] or self.memory.assumptions.denied,
                mark=view.skb.mark,
                answer=self.recorder.answer,
            )
        )
