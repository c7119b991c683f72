"""What a corpus should show of a ruleset: each rule matching, and each of its tests just failing.

A goal stands for one rule at one hook. It is met when the simulator's trace says so: nothing that
a flow was built for counts, only what it did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from backends.flow import Send
from backends.outcome import Assumption
from backends.packet import Packet
from backends.simulator import HookEntered, Rewritten, RuleVisited, TracedBranch, Tracked
from harness.corpus.generate.places import Places
from translate.ir import (
    AnyOf,
    ConnectionState,
    ConnectionStatus,
    Dnat,
    Field,
    FieldTest,
    Hook,
    Interval,
    Name,
    Protocol,
    Redirect,
    Rule,
    TableName,
    Test,
)

__all__ = ["HIT", "Goal", "Seen", "Sighting", "holds", "observe"]

HIT: Final = -1


class Goal(NamedTuple):
    """One side of a rule at a hook: ``side`` is :data:`HIT`, or the index of the test that fails."""

    table: TableName
    hook: Hook
    chain: str
    rule: int
    side: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A packet as the rules of one table saw it at a hook, and the Send that it comes from.

    ``first`` says that it is that Send's own packet, not a later one of its connection.
    """

    table: TableName
    hook: Hook
    packet: Packet
    mark: int
    iif: str
    oif: str
    state: ConnectionState
    status: ConnectionStatus
    sent: Send
    first: bool


@dataclass(slots=True)
class Seen:
    """What one flow shows.

    ``near``: goals met, where a miss has all other tests of the rule hold. ``far``: misses where
    more than one test fails. ``services``: destinations, as sent, that a DNAT rule changed.
    """

    near: set[Goal] = field(default_factory=set)
    far: set[Goal] = field(default_factory=set)
    sightings: list[Sighting] = field(default_factory=list)
    services: set[Send] = field(default_factory=set)


def observe(branches: Iterable[TracedBranch], places: Places) -> Seen:
    """Read a flow's trace."""
    seen = Seen()
    once: set[tuple[object, ...]] = set()
    for branch in branches:
        sent: Send | None = None
        for step in branch.steps:
            if isinstance(step.step, Send):
                sent = step.step
            if sent is not None:
                for sighting, event in _visits(step.events, sent, first=isinstance(step.step, Send)):
                    _note(seen, sighting, event, places)
                    s = sighting
                    key = (s.table, s.hook, s.packet.src, s.packet.dst, s.packet.dport, s.mark, s.state)
                    if key not in once:
                        once.add(key)
                        seen.sightings.append(s)
    seen.far -= seen.near
    return seen


def _visits(events: Iterable[object], sent: Send, *, first: bool) -> Iterator[tuple[Sighting, RuleVisited]]:
    entered: HookEntered | None = None
    packet: Packet | None = None
    state, status = ConnectionState.NEW, ConnectionStatus(0)
    for event in events:
        match event:
            case HookEntered():
                entered, packet = event, event.packet
            case Rewritten():
                packet = event.after
            case Tracked():
                state, status = event.state, event.status
            case RuleVisited() if not event.answer and entered is not None and packet is not None:
                yield (
                    Sighting(
                        table=event.table,
                        hook=event.hook,
                        packet=packet,
                        mark=event.mark,
                        iif=entered.iif,
                        oif=entered.oif,
                        state=state,
                        status=status,
                        sent=sent,
                        first=first,
                    ),
                    event,
                )


def _note(seen: Seen, sighting: Sighting, event: RuleVisited, places: Places) -> None:
    where = (event.table, event.hook, event.chain, event.index - 1)
    if event.failed is None:
        seen.near.add(Goal(*where, HIT))
        action = event.rule.actions[0] if event.rule.actions else None
        if isinstance(action, Dnat | Redirect):
            seen.services.add(sighting.sent)
        return
    assert not isinstance(event.failed, Assumption)  # a corpus is made from rules that hide nothing
    side = _position(event.rule, event.failed)
    goal = Goal(*where, side)
    if goal in seen.near:
        return
    if all(holds(test, sighting, places) is not False for test in event.rule.tests[side + 1 :]):
        seen.near.add(goal)
    else:
        seen.far.add(goal)


def _position(rule: Rule, test: Test) -> int:
    for index, one in enumerate(rule.tests):
        if one is test:
            return index
    return rule.tests.index(test)


def holds(test: Test, sighting: Sighting, places: Places) -> bool | None:
    """Whether the packet passes the test, or None when that cannot be said from a sighting."""
    match test:
        case FieldTest():
            return _field_holds(test, sighting, places)
        case AnyOf():
            parts = [_field_holds(t, sighting, places) for t in test.tests]
            if True in parts:
                return not test.negated
            return None if None in parts else test.negated
        case _:
            return None


def _field_holds(test: FieldTest, sighting: Sighting, places: Places) -> bool | None:
    value = _value(test.field, sighting, places)
    if value is NotImplemented:
        return None
    if value is None:
        return False
    if isinstance(value, str):
        found = any(isinstance(v, Name) and v.matches(value) for v in test.values)
    elif isinstance(value, int):
        masked = value if test.mask is None else value & test.mask
        found = any(isinstance(v, Interval) and masked in v for v in test.values)
    else:  # a port that the kernel picks
        return None
    return found != test.negated


def _value(field: Field, sighting: Sighting, places: Places) -> object:
    """The field's value, None when the packet lacks it, NotImplemented when it is not known."""
    packet = sighting.packet
    match field:
        case Field.SADDR:
            return packet.src
        case Field.DADDR:
            return packet.dst
        case Field.L4PROTO:
            return packet.proto
        case Field.FRAGMENT:
            return 0
        case Field.SPORT:
            return packet.sport if packet.has_ports else None
        case Field.DPORT:
            return packet.dport if packet.has_ports else None
        case Field.ICMP_TYPE:
            return packet.icmp_type or 0 if packet.is_icmp else None
        case Field.ICMP_CODE:
            return packet.icmp_code or 0 if packet.is_icmp else None
        case Field.TCP_FLAGS:
            return int(packet.flags) if packet.proto == Protocol.TCP else None
        case Field.MARK:
            return sighting.mark
        case Field.IIF:
            return sighting.iif
        case Field.OIF:
            return sighting.oif
        case Field.CT_STATE:
            return int(sighting.state)
        case Field.CT_STATUS:
            # NAT may have bound the connection after conntrack told its status.
            return NotImplemented if sighting.state is ConnectionState.NEW else int(sighting.status)
        case Field.FIB_SADDR_TYPE:
            return int(places.kind(packet.src))
        case Field.FIB_DADDR_TYPE:
            return int(places.kind(packet.dst))
        case _:
            return NotImplemented
