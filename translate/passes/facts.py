"""Facts about a packet at a place in the Program: the fields that are present, and their values.

Facts concern only steady fields (:attr:`Field.is_steady`): addresses, ports and most of the header change
only by NAT, which ends the table for the packet. Marks, TTL, TOS and conntrack data are excluded, because
actions can change them before control comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final

from translate.ir import (
    PORT_PROTOCOLS,
    Account,
    Apply,
    Branch,
    ConnectionState,
    Entry,
    Family,
    Field,
    FieldTest,
    Interval,
    Lookup,
    LoweredChain,
    Program,
    Protocol,
    Recent,
    RecentMode,
    SetUpdate,
    Statement,
    Test,
    Value,
    alternatives,
    field_bits,
)
from translate.ir.intervals import IntervalSet, covers, intersection, intervals, subtraction, union
from translate.passes.calls import callee, callees_first

__all__ = [
    "ALWAYS_PRESENT",
    "NOTHING",
    "Facts",
    "entry_facts",
    "everything",
    "facts_of",
    "facts_of_key",
    "implied",
    "impossible",
    "refine",
]

Facts = Mapping[Field, IntervalSet]
"""The fields that are known to be present, each with its possible values.

An empty set of values means that no packet comes here.
"""

NOTHING: Final[Facts] = MappingProxyType({})
"""The facts about any packet."""

ALWAYS_PRESENT: Final = frozenset(field for field in Field if field.is_always_present)
"""Fields that every packet has (see :class:`Field`)."""

_STABLE: Final = frozenset(field for field in Field if field.is_steady)

_NOT_A_FRAGMENT: Final = (Interval.point(0),)
_PORTS: Final = (Interval(0, 0xFFFF),)
_STATES: Final = union(Interval.point(int(s)) for s in ConnectionState)
_PORT_PROTOCOLS: Final = union(Interval.point(int(p)) for p in PORT_PROTOCOLS)


@cache
def everything(field: Field, family: Family) -> IntervalSet:
    """Return all values that a numeric field can have."""
    if field is Field.CT_STATE:
        return _STATES
    return (Interval(0, (1 << field_bits(field, family)) - 1),)


@cache
def _means(field: Field, family: Family) -> tuple[tuple[Field, IntervalSet], ...]:
    """Return the facts that follow from the presence of ``field``.

    A packet with a field of a header has one of the header's protocols, and is no later fragment.
    """
    icmp = Protocol.ICMP if family is Family.IP else Protocol.ICMPV6
    match field:
        case Field.SPORT | Field.DPORT:
            both = ((Field.SPORT, _PORTS), (Field.DPORT, _PORTS))
            return ((Field.FRAGMENT, _NOT_A_FRAGMENT), (Field.L4PROTO, _PORT_PROTOCOLS), *both)
        case Field.ICMP_TYPE | Field.ICMP_CODE:
            proto = (Interval.point(int(icmp)),)
            return ((Field.FRAGMENT, _NOT_A_FRAGMENT), (Field.L4PROTO, proto))
        case Field.TCP_FLAGS:
            proto = (Interval.point(int(Protocol.TCP)),)
            return ((Field.FRAGMENT, _NOT_A_FRAGMENT), (Field.L4PROTO, proto))
        case _:
            return ()


def refine(facts: Facts, tests: Iterable[Test], family: Family) -> Facts:
    """Return the facts about packets that pass all ``tests``."""
    refined: dict[Field, IntervalSet] | None = None
    for test in tests:
        if not isinstance(test, FieldTest) or test.field not in _STABLE:
            continue
        if refined is None:
            refined = dict(facts)
        before = refined.get(test.field)
        values = _values(test, family)
        refined[test.field] = values if before is None else intersection(before, values)
        for field, implied_values in _means(test.field, family):
            before = refined.get(field)
            refined[field] = implied_values if before is None else intersection(before, implied_values)
    return facts if refined is None else refined


def _values(test: FieldTest, family: Family) -> IntervalSet:
    if test.mask is not None or test.field is Field.TCP_FLAGS:  # -j ECN changes some of the flags
        return everything(test.field, family)
    values = intervals(test.values)
    return subtraction(everything(test.field, family), values) if test.negated else values


def impossible(facts: Facts) -> bool:
    """Return whether no packet satisfies the facts."""
    return () in facts.values()


def implied(test: Test, facts: Facts, family: Family) -> bool:
    """Return whether ``test`` holds for every packet of which ``facts`` are true.

    ``-m recent --set``, ``-m nfacct`` and ``-j SET`` always hold, but they have effects and must not be left
    out.
    """
    if isinstance(test, Recent):
        return test.mode is RecentMode.SET and not test.negated
    if isinstance(test, Account | SetUpdate):
        return True
    if not isinstance(test, FieldTest) or test.field.is_name:
        return False
    possible = facts.get(test.field)
    if possible is None:
        if test.field not in ALWAYS_PRESENT:
            return False
        possible = everything(test.field, family)
    values = intervals(test.values)
    if test.mask is not None:
        if not all(v.is_point for v in possible) or len(possible) > 1:
            return False
        possible = union(Interval.point(v.low & test.mask) for v in possible)
    return not intersection(values, possible) if test.negated else covers(values, possible)


def entry_facts(program: Program) -> dict[str, Facts]:
    """Return the facts about all packets that enter each chain.

    They are the facts that hold at every call of the chain. Nothing is known at base chains and at chains
    that no rule calls.
    """
    entry: dict[str, Facts] = {}
    calls: dict[str, list[Facts]] = {}
    for chain in reversed(callees_first(program)):
        at_entry = _agreed(calls.pop(chain.name, ())) if chain.hook is None else NOTHING
        entry[chain.name] = at_entry
        for target, facts in _calls(chain, at_entry, program.family):
            if not impossible(facts):
                calls.setdefault(target, []).append(facts)
    return entry


def _agreed(calls: Sequence[Facts]) -> Facts:
    """Return the facts that hold at all calls: one union for all, because there may be thousands of calls."""
    if not calls:
        return NOTHING
    first = calls[0]
    if all(facts is first for facts in calls):
        return first
    return {
        field: union(value for values in {facts[field] for facts in calls} for value in values)
        for field in first
        if all(field in facts for facts in calls)
    }


def _calls(chain: LoweredChain, at_entry: Facts, family: Family) -> Iterable[tuple[str, Facts]]:
    for statement in chain.statements:
        at_statement: Facts | None = None
        for each in alternatives(statement):
            name = callee(each.actions)
            if name is not None:
                at_statement = (
                    refine(at_entry, statement.tests, family) if at_statement is None else at_statement
                )
                added = facts_of(statement, each)
                yield name, refine(at_statement, added, family) if added else at_statement


def facts_of_key(fields: tuple[Field, ...], key: tuple[Value, ...]) -> tuple[FieldTest, ...]:
    """Return the tests that are equivalent to a lookup's key."""
    return tuple(FieldTest(field=field, values=(value,)) for field, value in zip(fields, key, strict=True))


def facts_of(statement: Statement, alternative: Apply | Entry | Branch) -> tuple[FieldTest, ...]:
    """Return the tests that an alternative adds to its statement: those of an entry's key."""
    if isinstance(statement, Lookup) and isinstance(alternative, Entry):
        return facts_of_key(statement.fields, alternative.key)
    return ()
