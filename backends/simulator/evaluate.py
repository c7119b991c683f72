"""Evaluating a table's chain on a packet: tests, jumps, effects, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import assert_never

from backends.packet import PortClass
from backends.simulator.chooser import Chooser
from backends.simulator.fields import View
from backends.simulator.ports import PickedPort, Ports
from backends.simulator.prepare import PreparedTable
from backends.simulator.recent import RecentLists
from backends.simulator.trace import PolicyApplied, Recorder, RuleVisited
from translate.ir import (
    RANDOM_RANGE,
    Accept,
    AnyOf,
    Chain,
    ConnectionState,
    Dnat,
    Drop,
    FieldTest,
    Goto,
    Interval,
    Jump,
    Masquerade,
    Name,
    NoTrack,
    Nth,
    Policy,
    Random,
    Recent,
    Redirect,
    Reject,
    Return,
    Rule,
    SetDirection,
    SetMark,
    SetTest,
    Snat,
    Test,
)

__all__ = ["Decision", "Evaluator"]

Decision = Accept | Drop | Reject | Dnat | Snat | Masquerade | Redirect
"""What ends a table's walk: a verdict, or a NAT target, which accepts once it has bound."""


@dataclass(slots=True)
class Evaluator:
    """``ipt_do_table`` over prepared tables, for one run."""

    chooser: Chooser
    ports: Ports
    recorder: Recorder
    lists: RecentLists
    _counters: dict[tuple[int, int], int] = field(default_factory=dict)

    def table(self, table: PreparedTable, view: View) -> Decision:
        """Walk the built-in chain of ``table`` at the view's hook and return what was decided."""
        chain: Chain | None = table.base.get(view.hook)
        index = 0
        back: list[tuple[Chain, int]] = []
        while chain is not None:
            if index == len(chain.rules):
                if not back:
                    break
                chain, index = back.pop()
                continue
            rule = chain.rules[index]
            index += 1
            failed = self._failed(rule, view)
            action = rule.actions[0] if failed is None and rule.actions else None
            if isinstance(action, SetMark):
                view.skb.mark = view.skb.mark & ~action.mask ^ action.value
            if self.recorder.enabled:
                self._record(table, view, chain, index, rule, failed)
            match action:
                case None | SetMark():
                    pass
                case NoTrack():
                    if view.skb.state is None:
                        view.skb.state = ConnectionState.UNTRACKED
                case Jump():
                    back.append((chain, index))
                    chain, index = table.chains[action.chain], 0
                case Goto():
                    chain, index = table.chains[action.chain], 0
                case Return():
                    if not back:
                        break
                    chain, index = back.pop()
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

    def _record(
        self, table: PreparedTable, view: View, chain: Chain, index: int, rule: Rule, failed: Test | None
    ) -> None:
        self.recorder.add(
            RuleVisited(
                table=table.name,
                hook=view.hook,
                chain=chain.name,
                index=index,
                rule=rule,
                failed=failed,
                mark=view.skb.mark,
                answer=self.recorder.answer,
            )
        )

    def _failed(self, rule: Rule, view: View) -> Test | None:
        """Return the first test of the rule that does not hold, or None."""
        for i, test in enumerate(rule.tests):
            if not self._holds(test, view, rule, i):
                return test
        return None

    def _holds(self, test: Test, view: View, rule: Rule, index: int) -> bool:
        match test:
            case FieldTest():
                return self._field(test, view)
            case AnyOf():
                return any(self._field(t, view) for t in test.tests) != test.negated
            case Random():
                return self.chooser.happens(Fraction(test.numerator, RANDOM_RANGE)) != test.negated
            case Nth():
                return self._nth(test, rule, index) != test.negated
            case Recent():
                return self._recent(test, view)
            case SetTest():
                raise AssertionError(test)  # refused by prepare()
            case _:
                assert_never(test)

    def _field(self, test: FieldTest, view: View) -> bool:
        value = view.read(test.field)
        match value:
            case None:
                return False
            case str():
                found = any(isinstance(v, Name) and v.matches(value) for v in test.values)
            case PortClass():
                assert isinstance(value, PickedPort)
                found = self.ports.within(value, _intervals(test))
            case int():
                masked = value if test.mask is None else value & test.mask
                found = any(isinstance(v, Interval) and masked in v for v in test.values)
            case _:
                assert_never(value)
        return found != test.negated

    def _recent(self, test: Recent, view: View) -> bool:
        packet = view.skb.packet
        address = packet.src if test.side is SetDirection.SRC else packet.dst
        # What is forwarded has lost one already where there is an out-device (recent_mt).
        ttl = packet.ttl + 1 if view.oif and view.skb.dev else packet.ttl
        return self.lists.matches(test, address, ttl)

    def _nth(self, test: Nth, rule: Rule, index: int) -> bool:
        """``xt_statistic``'s nth mode.

        The counter outlives flows, so where it stands when a flow first meets it is not known:
        every position is equally likely. From then on it counts.
        """
        key = (id(rule), index)
        count = self._counters.get(key)
        if count is None:
            count = self.chooser.choose([Fraction(1, test.every)] * test.every)
        self._counters[key] = (count + 1) % test.every
        return count == test.packet


def _intervals(test: FieldTest) -> tuple[Interval, ...]:
    """The values of a port that pass the test before negation."""
    given = tuple(v for v in test.values if isinstance(v, Interval))
    if test.mask is None:
        return given
    mask = test.mask
    return tuple(Interval.point(p) for p in range(0x10000) if any(p & mask in v for v in given))
