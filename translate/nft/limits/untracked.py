"""Refusal of NOTRACK rules where ``notrack`` would also apply to the node's own errors about UNTRACKED
packets.

An ICMP error of the stack, or a RST of REJECT, gets the connection of the packet that it answers. If that
packet is UNTRACKED, the answer gets a state without a connection (``nf_conntrack_attach``). x_tables' NOTRACK
leaves a packet with such a state alone (``xt_ct_target``), so conntrack sees the answer and finds it INVALID.
nftables' ``notrack`` only checks for a connection (``nft_notrack_eval``) and makes the answer UNTRACKED. No
nftables expression distinguishes these packets. So NOTRACK is refused if it can meet such an answer and a
later rule distinguishes INVALID from UNTRACKED.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from translate.errors import Refusal
from translate.ir import (
    Action,
    ConnectionState,
    Family,
    Field,
    FieldTest,
    Hook,
    Interval,
    LoweredChain,
    Name,
    NoTrack,
    Origin,
    Program,
    Protocol,
    Reject,
    RejectKind,
    TableName,
    Test,
    alternatives,
    flat,
)
from translate.nft.limits.refusal import CannotSay
from translate.passes.calls import callees_first
from translate.passes.facts import NOTHING, Facts, entry_facts, facts_of, impossible, refine
from translate.passes.inventory import Inventory

__all__ = ["refused_answers"]

_LOOPBACK: Final = "lo"
_ICMP_ERRORS: Final = {
    Family.IP: (Protocol.ICMP, (Interval(3, 5), Interval(11, 12))),
    Family.IP6: (Protocol.ICMPV6, (Interval(1, 4), Interval.point(137))),
}
"""The ICMP errors that the stack sends about other packets: the protocol and the types."""


class _GuardedActions(NamedTuple):
    """Actions with the tests that guard them; ``known`` are facts about packets that reach the rule."""

    origin: Origin
    known: Facts
    tests: tuple[Test, ...]
    actions: tuple[Action, ...]


def refused_answers(inventory: Inventory) -> Iterator[Refusal]:
    """Yield a refusal for each NOTRACK that a later rule can distinguish from nftables' ``notrack``."""
    if NoTrack not in inventory.actions:
        return
    program = inventory.program
    rules_of = {hook: list(_guarded(program, hook, raw=True)) for hook in (Hook.OUTPUT, Hook.PREROUTING)}
    family = program.family
    icmp, rst = _icmp_error(family), _rst()
    answers = [icmp, rst] if _resets(program) else [icmp]
    distinguishing = {hook: list(filter(_distinguishes, _guarded(program, hook, raw=False))) for hook in Hook}
    leaving = distinguishing[Hook.OUTPUT] + distinguishing[Hook.POSTROUTING]
    looping = [rule for hook in (Hook.PREROUTING, Hook.INPUT) for rule in distinguishing[hook]]
    looping = [rule for rule in looping if _may_use(rule.tests, Field.IIF)]
    for hook, hook_rules in rules_of.items():
        for rule in filter(_notracks, hook_rules):
            # A RST that comes back through lo as INVALID no longer has the state of the rejected packet.
            for answer in answers if hook is Hook.OUTPUT else answers[:1]:
                later = leaving if hook is Hook.OUTPUT else []
                if _may_use(rule.tests, Field.OIF if hook is Hook.OUTPUT else Field.IIF):
                    later = later + looping
                affected = next((rule for rule in later if _meets(rule, answer, family)), None)
                if affected is not None and _meets(rule, answer, family):
                    yield _refusal(rule.origin, affected.origin)
                    break


def _refusal(origin: Origin, affected: Origin) -> Refusal:
    reason = (
        "nftables' notrack also applies to the node's answers to UNTRACKED packets (ICMP errors, RST), which"
        f" NOTRACK leaves INVALID; line {affected.line} tests the difference"
    )
    return CannotSay("notrack-answers", reason).at(origin)


def _guarded(program: Program, hook: Hook, *, raw: bool) -> Iterator[_GuardedActions]:
    """Yield the rules at a hook: those of the raw table, or the reachable ones after conntrack."""
    tables = {TableName.RAW} if raw else {TableName.MANGLE, TableName.FILTER, TableName.SECURITY}
    starts = [chain for chain in program.chains if chain.hook is hook and chain.table in tables]
    facts = entry_facts(program)
    for chain in callees_first(program, starts):
        yield from _guarded_of(chain, facts.get(chain.name, NOTHING))


def _guarded_of(chain: LoweredChain, known: Facts) -> Iterator[_GuardedActions]:
    for statement in chain.statements:
        for each in alternatives(statement):
            tests = (*statement.tests, *facts_of(statement, each))
            yield _GuardedActions(each.origin, known, tests, each.actions)


def _notracks(rule: _GuardedActions) -> bool:
    return any(isinstance(action, NoTrack) for action in rule.actions)


def _resets(program: Program) -> bool:
    return any(
        isinstance(action, Reject) and action.kind is RejectKind.TCP_RESET for action in _actions(program)
    )


def _actions(program: Program) -> Iterator[Action]:
    for chain in program.chains:
        for statement in chain.statements:
            for each in alternatives(statement):
                yield from each.actions


def _icmp_error(family: Family) -> tuple[FieldTest, ...]:
    proto, types = _ICMP_ERRORS[family]
    return (
        FieldTest(field=Field.L4PROTO, values=(Interval.point(int(proto)),)),
        FieldTest(field=Field.ICMP_TYPE, values=types),
    )


def _rst() -> tuple[FieldTest, ...]:
    return (FieldTest(field=Field.L4PROTO, values=(Interval.point(int(Protocol.TCP)),)),)


def _meets(rule: _GuardedActions, answer: Iterable[FieldTest], family: Family) -> bool:
    return not impossible(refine(refine(rule.known, answer, family), rule.tests, family))


def _distinguishes(rule: _GuardedActions) -> bool:
    """Return whether the rule distinguishes the states INVALID and UNTRACKED."""
    return any(
        _has(test, ConnectionState.INVALID) != _has(test, ConnectionState.UNTRACKED)
        for test in flat(rule.tests)
        if isinstance(test, FieldTest) and test.field is Field.CT_STATE
    )


def _has(test: FieldTest, state: ConnectionState) -> bool:
    return any(int(state) in value for value in test.values if isinstance(value, Interval))


def _may_use(tests: Iterable[Test], field: Field) -> bool:
    """Return whether packets with ``lo`` in this field pass the tests."""
    for test in tests:
        if isinstance(test, FieldTest) and test.field is field:
            named = any(value.matches(_LOOPBACK) for value in test.values if isinstance(value, Name))
            if named is test.negated:
                return False
    return True
