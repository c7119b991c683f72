"""The plain walk through a table: every rule in order, as ``ipt_do_table`` visits them.

This walk defines the result of the simulator. Tests compare :mod:`backends.simulator.walk.fast` with it, and
full traces use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final, assert_never

from backends.model.outcome import Assumption
from backends.simulator.matching.conditions import Condition
from backends.simulator.matching.memory import Memory
from backends.simulator.matching.view import HotDrop, View
from backends.simulator.trace import PolicyApplied, Recorder, RuleVisited
from backends.simulator.walk.chainmemo import Decision
from backends.simulator.walk.effects import take_effect
from backends.simulator.walk.prepare import PreparedChain, PreparedRule, PreparedTable
from translate.dataclass import dataclass, field
from translate.errors import InputError
from translate.ir import (
    Accept,
    Dnat,
    Drop,
    Goto,
    Jump,
    Masquerade,
    Netmap,
    Policy,
    Redirect,
    Reject,
    Return,
    Snat,
    SynProxy,
    Test,
)

__all__ = ["Jumps", "PlainWalk"]

_MOST_JUMPS: Final = 500_000
"""The limit of jumps for one flow: some seconds of work. The kernel has no limit."""


@dataclass(slots=True)
class Jumps:
    """The number of jumps that the packets of one flow have made, on all of its branches."""

    count: int = 0

    def add(self, rule: PreparedRule) -> None:
        """Count a jump by ``rule``. Raises InputError if there are too many."""
        self.count += 1
        if self.count > _MOST_JUMPS:
            raise InputError(
                f"{rule.rule.origin.place}: the packets of one flow jump more than {_MOST_JUMPS} times,"
                " the last time at this rule; the simulator stops here, but the kernel has no such limit"
            )


@dataclass(slots=True)
class PlainWalk:
    """The plain walk (``ipt_do_table``) over prepared tables, for one run."""

    idle_tables: ClassVar[bool] = True
    """True if tables that accept every packet are walked, to record that."""

    memory: Memory
    recorder: Recorder
    jumps: Jumps = field(default_factory=Jumps)

    def table(self, table: PreparedTable, view: View) -> Decision:
        """Walk the built-in chain of ``table`` at the view's hook and return the decision."""
        start = table.chain(view.hook)
        decision = self._walk(table, start, view)
        if decision is not None:
            return decision
        self.recorder.add(
            PolicyApplied(table=table.name, hook=view.hook, policy=start.policy, answer=self.recorder.answer)
        )
        return Accept() if start.policy is Policy.ACCEPT else Drop()

    def _walk(self, table: PreparedTable, start: PreparedChain, view: View) -> Decision | None:
        """Visit rules until one decides; return None if the walk leaves the built-in chain undecided."""
        memory = self.memory
        walks = [self._rules(table, start, view)]
        while walks:
            for rule in walks[-1]:
                failed = None
                try:
                    for holds in rule.conditions:
                        failed = holds
                        if not holds(view, memory):
                            break
                    else:
                        failed = None
                        if rule.effect is not None:
                            take_effect(rule.effect, view)
                except HotDrop:
                    self._record(table, view, rule, failed, dropped=True)
                    return Drop()
                self._record(table, view, rule, failed)
                if failed is not None or rule.control is None:
                    continue
                match rule.control:
                    case Jump(chain=name):
                        self.jumps.add(rule)
                        walks.append(self._rules(table, table.chain(name), view))
                    case Goto(chain=name):
                        self.jumps.add(rule)
                        walks[-1] = self._rules(table, table.chain(name), view)
                    case Return():
                        walks.pop()
                    case (
                        Accept()
                        | Drop()
                        | Reject()
                        | SynProxy()
                        | Dnat()
                        | Snat()
                        | Masquerade()
                        | Redirect()
                        | Netmap()
                    ):
                        return rule.control
                    case _:
                        assert_never(rule.control)
                break
            else:
                walks.pop()
        return None

    def _rules(self, table: PreparedTable, chain: PreparedChain, view: View) -> Iterator[PreparedRule]:
        """Yield the rules of a chain to visit: here, all of them."""
        return iter(chain.rules)

    def _record(
        self,
        table: PreparedTable,
        view: View,
        rule: PreparedRule,
        failed: Condition | None,
        *,
        dropped: bool = False,
    ) -> None:
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
                dropped=dropped,
            )
        )
