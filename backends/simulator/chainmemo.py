"""What a chain decided about earlier packets, for those that it cannot tell from them.

Some chains ask every packet the same few questions: its mark, its state, an interface. Of those
questions the answers of only a few combinations ever turn up, so the walk through the chain, and
through the chains that it calls, is done once for each. The answers are those of the walk, because
a chain is remembered only if all of its rules and all that it can call

- test nothing but fields of :data:`_FEW`, no part of which is hidden or a port that the kernel
  picked: with equal values in the fields that are tested, every test has the same result, and
  none decides or remembers anything;
- change nothing but the packet's mark, which is always among what they are remembered by.

A trace is made by the plain walk, since it tells of every rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from backends.simulator.fields import View
from translate.ir import (
    Accept,
    AnyOf,
    Chain,
    Dnat,
    Drop,
    Field,
    FieldTest,
    Goto,
    Jump,
    Log,
    Masquerade,
    NfLog,
    Redirect,
    Reject,
    Return,
    Rule,
    SetMark,
    Snat,
)

__all__ = ["ChainMemo", "Decision", "memo_of"]

Decision = Accept | Drop | Reject | Dnat | Snat | Masquerade | Redirect
"""What ends a table's walk: a verdict, or a NAT target, which accepts once it has bound."""

_FEW: Final = {
    Field.L4PROTO: "skb.packet.proto",
    Field.MARK: "skb.mark",
    Field.IIF: "iif",
    Field.OIF: "oif",
    Field.CT_STATE: "skb.ct_state",
}
"""Fields in which a few values are those of almost all packets, and where a view has them."""

_DONE_AGAIN: Final = Jump | Goto | Return | Decision | SetMark | Log | NfLog
"""Actions that do nothing but lead the walk, decide, or set the mark."""

_FEWEST_RULES: Final = 2
_MOST_RULES: Final = 100
"""Fewer are asked as fast as they are looked up; more are seldom all of this kind."""
_MOST_KNOWN: Final = 4096


@dataclass(frozen=True, slots=True)
class ChainMemo:
    """What came of a chain by the values of the fields that are tested in it.

    That is what it decided (None: the walk came back out of it), and the packet's mark then.
    """

    key: Callable[[View], object]
    """Returns all that the chain can learn of a packet."""
    known: dict[object, tuple[Decision | None, int]] = field(default_factory=dict)

    def keep(self, key: object, decision: Decision | None, mark: int) -> None:
        """Remember what came of the chain for a packet with this key."""
        if len(self.known) < _MOST_KNOWN:
            self.known[key] = decision, mark


def memo_of(name: str, written: Mapping[str, Chain]) -> ChainMemo | None:
    """Return an empty memo for a chain of ``written``; None for one that cannot be remembered."""
    fields = {Field.MARK}  # which is told of every packet afterwards
    count = 0
    for rule in _reached(name, written):
        asked = _asked(rule)
        count += 1
        if asked is None or count > _MOST_RULES:
            return None
        fields |= asked
    if count < _FEWEST_RULES:
        return None
    return ChainMemo(attrgetter(*(_FEW[f] for f in Field if f in fields)))


def _reached(name: str, written: Mapping[str, Chain]) -> Iterator[Rule]:
    """The rules of a chain, and of those that it can call, each once, as far as the caller asks."""
    seen = {name}
    pending = [name]
    while pending:
        chain = written.get(pending.pop())
        for rule in () if chain is None else chain.rules:
            yield rule
            for action in rule.actions:
                if isinstance(action, Jump | Goto) and action.chain not in seen:
                    seen.add(action.chain)
                    pending.append(action.chain)


def _asked(rule: Rule) -> set[Field] | None:
    """The fields that what comes of a rule depends on; None where it depends on, or does, more."""
    if rule.unknown:
        return None
    fields: set[Field] = set()
    for test in rule.tests:
        match test:
            case FieldTest():
                fields.add(test.field)
            case AnyOf():
                fields.update(t.field for t in test.tests)
            case _:
                return None
    for action in rule.actions:
        if not isinstance(action, _DONE_AGAIN):
            return None
    return fields if fields <= _FEW.keys() else None
