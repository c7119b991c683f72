"""The effects that iptables rules may have on a packet of which only some fields are known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nfparity.assess.reordering.packets import ALL_BITS, Effect, EffectKind, Possible
from translate.ir import (
    BYTE_TESTS,
    Accept,
    AnyOf,
    Audit,
    Chain,
    Drop,
    FieldTest,
    Goto,
    HashMark,
    Jump,
    Log,
    NfLog,
    Policy,
    Random,
    Reject,
    RestoreMark,
    RestoreSocketMark,
    Return,
    Rule,
    SetMark,
    SetTest,
    Table,
    Test,
    Trace,
)

__all__ = ["iptables_effects"]

_WITHOUT_EFFECT: Final = (Log, NfLog, Audit, Trace)
"""Actions that no other rule and no receiver of the packet can see."""
_STATELESS: Final = (FieldTest, AnyOf, SetTest, Random, *BYTE_TESTS)


def iptables_effects(table: Table, chain: Chain, packet: Possible) -> frozenset[Effect]:
    """Return the effects that a base chain may have on a packet; verdicts that accept it are none."""
    effects, _ = _Walk(table, packet).through(chain)
    if chain.policy is Policy.DROP:
        effects |= {Effect(EffectKind.DROP)}
    return effects


_Result = tuple[frozenset[Effect], bool]
"""The effects of a chain, and whether every packet ends there: no rule after the jump sees it."""


class _Walk:
    """A walk of one packet through a table."""

    def __init__(self, table: Table, packet: Possible) -> None:
        self._chains = {chain.name: chain for chain in table.chains}
        self._packet = packet
        self._known: dict[str, _Result] = {}

    def through(self, chain: Chain) -> _Result:
        """Return the effects of a chain and of those that it calls."""
        if chain.name not in self._known:
            self._known[chain.name] = frozenset(), False  # rules of a loop count where it begins
            self._known[chain.name] = self._through(chain)
        return self._known[chain.name]

    def _through(self, chain: Chain) -> _Result:
        effects: set[Effect] = set()
        for rule in chain.rules:
            matches = self._matches(rule, effects)
            if matches is False:
                continue
            effects.update(_of_actions(rule))
            if rule.callee in self._chains:
                called, ends = self.through(self._chains[rule.callee])
                effects |= called
                if matches and (ends or rule.goto):
                    return frozenset(effects), ends
            elif matches and any(isinstance(action, Return) for action in rule.actions):
                return frozenset(effects), False
            elif matches and any(isinstance(action, Accept | Drop | Reject) for action in rule.actions):
                return frozenset(effects), True
        return frozenset(effects), False

    def _matches(self, rule: Rule, effects: set[Effect]) -> bool | None:
        """Return whether a rule matches, and add the effects of its tests, in the order of the tests."""
        matches = None if rule.unknown else True
        for test in rule.tests:
            holds = self._holds(test)
            if holds is False:
                return False
            if not isinstance(test, _STATELESS):
                effects.add(Effect(EffectKind.OTHER))  # it counts, or changes a list
            matches = matches if holds else None
        if rule.is_undecided:
            effects.add(Effect(EffectKind.OTHER))
        return matches

    def _holds(self, test: Test) -> bool | None:
        match test:
            case FieldTest():
                return self._packet.test(test.field, test.values, mask=test.mask, negated=test.negated)
            case AnyOf():
                results = [self._holds(inner) for inner in test.tests]
                any_holds = True if True in results else None if None in results else False
                return any_holds if any_holds is None or not test.negated else not any_holds
            case _:
                return None


def _of_actions(rule: Rule) -> Iterator[Effect]:
    """Yield the effects of a rule's actions, without those of the chain that it calls."""
    for action in rule.actions:
        match action:
            case Drop():
                yield Effect(EffectKind.DROP)
            case Reject():
                yield Effect(EffectKind.REJECT)
            case SetMark():
                yield Effect(EffectKind.MARK, action.value)
            case HashMark() | RestoreMark() | RestoreSocketMark():
                yield Effect(EffectKind.OTHER, ALL_BITS)
            case _ if not isinstance(action, (Accept, Return, Jump, Goto, *_WITHOUT_EFFECT)):
                yield Effect(EffectKind.OTHER)
