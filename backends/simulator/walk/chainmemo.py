"""Memoised verdicts of chains, by the few fields that each chain reads.

Some chains test only the mark, the state or an interface. Few combinations of these values occur, so the
chain, with the chains that it calls, is walked once for each combination. The verdict equals that of the
plain walk, because a chain is memoised only if its rules and those of all chains that it can call:


- test nothing but fields of :data:`_FEW`, none of which is hidden or a port that the kernel picked: with
  equal values in the fields that are tested, every test has the same result and no side effect;
- change nothing but the packet's mark, which is always part of the key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Final

from backends.simulator.matching.view import View
from translate.dataclass import dataclass, field
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
    Masquerade,
    Netmap,
    Redirect,
    Reject,
    Return,
    Rule,
    SetMark,
    SideEffect,
    Snat,
    SynProxy,
)

__all__ = ["ChainMemo", "Decision", "memo_of"]

Decision = Accept | Drop | Reject | SynProxy | Dnat | Snat | Masquerade | Redirect | Netmap
"""The end of a table's walk: a verdict, or a NAT target, which accepts after it has bound."""

_FEW: Final = {
    Field.L4PROTO: "skb.packet.proto",
    Field.MARK: "skb.mark",
    Field.IIF: "iif",
    Field.OIF: "oif",
    Field.CT_STATE: "skb.ct_state",
}
"""Fields with few values, and their places in a view."""

_REPEATABLE: Final = Jump | Goto | Return | Decision | SetMark | SideEffect
"""Actions that only direct the walk, decide, or set the mark."""

_FEWEST_RULES: Final = 2
_MOST_RULES: Final = 100
"""Limits of the number of rules: a shorter chain is walked as fast, a longer one seldom qualifies."""
_MOST_KNOWN: Final = 4096


@dataclass(frozen=True, slots=True)
class ChainMemo:
    """The results of a chain by the values of the fields that it tests.

    A result is the chain's decision (None: it returned) and the packet's mark afterwards.
    """

    key: Callable[[View], object]
    """Returns the values of a packet that the chain reads."""
    results: dict[object, tuple[Decision | None, int]] = field(default_factory=dict)

    def keep(self, key: object, decision: Decision | None, mark: int) -> None:
        """Keep the result of the chain for packets with this key."""
        if len(self.results) < _MOST_KNOWN:
            self.results[key] = decision, mark


def memo_of(name: str, written: Mapping[str, Chain]) -> ChainMemo | None:
    """Return an empty memo for a chain of ``written``; None for a chain that cannot be memoised."""
    fields = {Field.MARK}  # part of every result
    count = 0
    for rule in _reached(name, written):
        read = _fields_read(rule)
        count += 1
        if read is None or count > _MOST_RULES:
            return None
        fields |= read
    if count < _FEWEST_RULES:
        return None
    return ChainMemo(attrgetter(*(_FEW[f] for f in Field if f in fields)))


def _reached(name: str, written: Mapping[str, Chain]) -> Iterator[Rule]:
    """Yield the rules of a chain and of those that it can call, each once."""
    queued = {name}
    pending = [name]
    while pending:
        chain = written.get(pending.pop())
        for rule in () if chain is None else chain.rules:
            yield rule
            for action in rule.actions:
                if isinstance(action, Jump | Goto) and action.chain not in queued:
                    queued.add(action.chain)
                    pending.append(action.chain)


def _fields_read(rule: Rule) -> set[Field] | None:
    """Return the fields on which a rule's result depends; None for a rule that cannot be memoised."""
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
        if not isinstance(action, _REPEATABLE):
            return None
    return fields if fields <= _FEW.keys() else None
