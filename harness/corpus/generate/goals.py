"""The goals of a generated corpus: each rule matches, and each of its tests just fails.

A goal belongs to one rule at one hook. Only the simulator's trace decides which goals a flow meets, not the
goal that the flow was built for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from backends.model.clock import clock_value
from backends.model.flow import Send
from backends.model.outcome import Assumption
from backends.model.packet import Packet
from backends.simulator import (
    AlikeRules,
    HookEntered,
    Rewritten,
    RulesSkipped,
    RuleVisited,
    TracedBranch,
    Tracked,
)
from harness.corpus.formats.headers import HEADER_FIELDS, header_value
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.selection import Place, Selection
from translate.dataclass import dataclass, field
from translate.ir import (
    CLOCKS,
    IPSEC_STATES,
    Action,
    AnyOf,
    ConnectionState,
    ConnectionStatus,
    Dnat,
    Field,
    FieldTest,
    Hook,
    Interval,
    Name,
    Netmap,
    Protocol,
    Redirect,
    Rule,
    SetTest,
    SetType,
    SetUpdate,
    TableName,
    Test,
)

__all__ = ["HIT", "FlowGoals", "Goal", "Sighting", "Wanted", "hits", "holds", "observe"]

HIT: Final = -1


class Goal(NamedTuple):
    """One result of a rule at a hook: ``side`` is :data:`HIT`, or the index of the test that fails."""

    table: TableName
    hook: Hook
    chain: str
    rule: int
    side: int

    @property
    def place(self) -> Place:
        """The rule."""
        return self.table, self.chain, self.rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A packet as one table saw it at a hook, and the Send that began its connection.

    ``first`` is True for the packet of that Send, and False for a later packet of the connection.
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
class FlowGoals:
    """The goals and services that one flow shows.

    ``near`` are hits, and misses where all other tests of the rule hold. ``far`` are misses where more than
    one test fails. ``services`` are packets, as sent, whose destination a DNAT rule changed.
    """

    near: set[Goal] = field(default_factory=set)
    far: set[Goal] = field(default_factory=set)
    sightings: list[Sighting] = field(default_factory=list)
    services: set[Send] = field(default_factory=set)

    def add(self, other: FlowGoals) -> None:
        """Add the goals and services of another branch of the flow."""
        self.near |= other.near
        self.far = (self.far | other.far) - self.near
        self.services |= other.services


@dataclass(slots=True)
class Wanted:
    """The rules whose goals are recorded; all rules if ``chosen`` is None.

    The goals of a group of rules that traces skip together are created once.
    """

    chosen: Selection | None = None
    _made: dict[tuple[Hook, AlikeRules, int], tuple[tuple[int, ...], tuple[Goal, ...]]] = field(
        default_factory=dict
    )

    def has(self, event: RuleVisited) -> bool:
        """Return whether the goals of the visited rule are recorded."""
        return self.chosen is None or self.chosen.has(event.table, event.chain, event.index - 1)

    def of(self, skipped: RulesSkipped, rules: AlikeRules, side: int) -> tuple[Goal, ...]:
        """Return the goal for ``side`` of each wanted rule among the skipped rules."""
        made = self._made.get((skipped.hook, rules, side))
        if made is None:
            positions = rules.positions
            if self.chosen is not None:
                positions = self.chosen.among(skipped.table, skipped.chain, positions)
            about = skipped.table, skipped.hook, skipped.chain
            made = positions, tuple([Goal(*about, position, side) for position in positions])
            self._made[skipped.hook, rules, side] = made
        positions, goals = made
        first = bisect_left(positions, skipped.first - 1)
        return goals[first : bisect_left(positions, skipped.last, first)]


def observe(branches: Iterable[TracedBranch], places: Places, wanted: Wanted) -> FlowGoals:
    """Return the goals and services that the trace of a flow shows."""
    goals = FlowGoals()
    once: set[tuple[object, ...]] = set()
    for branch in branches:
        sent: Send | None = None
        for step in branch.steps:
            if isinstance(step.step, Send):
                sent = step.step
            if sent is not None:
                first = isinstance(step.step, Send)
                for s, visits in _sightings(step.events, sent, first=first):
                    _note(goals, s, visits, places, wanted)
                    key = (s.table, s.hook, s.packet.src, s.packet.dst, s.packet.dport, s.mark, s.state)
                    if key not in once:
                        once.add(key)
                        goals.sightings.append(s)
    goals.far -= goals.near
    return goals


def hits(shown: Iterable[tuple[Send, FlowGoals]]) -> Iterator[tuple[Send, Goal]]:
    """Yield each goal that is the hit of a rule, with the packet that reaches it."""
    return ((sent, goal) for sent, goals in shown for goal in goals.near if goal.side == HIT)


def _sightings(
    events: Iterable[object], sent: Send, *, first: bool
) -> Iterator[tuple[Sighting, list[RuleVisited | RulesSkipped]]]:
    """Yield each form of the packet that rules saw, with the visits of these rules."""
    entered: HookEntered | None = None
    packet: Packet | None = None
    state, status = ConnectionState.NEW, ConnectionStatus(0)
    visits: list[RuleVisited | RulesSkipped] = []

    def sighting() -> Sighting:
        assert entered is not None
        assert packet is not None
        last = visits[-1]
        return Sighting(
            table=last.table,
            hook=last.hook,
            packet=packet,
            mark=last.mark,
            iif=entered.iif,
            oif=entered.oif,
            state=state,
            status=status,
            sent=sent,
            first=first,
        )

    for event in events:
        if isinstance(event, RuleVisited | RulesSkipped):
            if event.answer or packet is None:
                continue
            if visits and (event.mark != visits[-1].mark or event.table is not visits[-1].table):
                yield sighting(), visits
                visits = []
            visits.append(event)
            continue
        if visits:
            yield sighting(), visits
            visits = []
        match event:
            case HookEntered():
                entered, packet = event, event.packet
            case Rewritten():
                packet = event.after
            case Tracked():
                state, status = event.state, event.status
    if visits:
        yield sighting(), visits


def _note(
    goals: FlowGoals,
    sighting: Sighting,
    visits: Iterable[RuleVisited | RulesSkipped],
    places: Places,
    wanted: Wanted,
) -> None:
    values: dict[Field, object] = {}
    near, far = goals.near, goals.far
    for event in visits:
        if isinstance(event, RulesSkipped):
            for rules, side in event.failed:
                skipped = wanted.of(event, rules, side)
                if skipped:
                    alone = side == rules.side and not any(
                        holds(test, sighting, places, values) is False for test in rules.behind
                    )
                    (near if alone else far).update(skipped)
            continue
        if not wanted.has(event):
            continue
        rule, failed = event.rule, event.failed
        if failed is None:
            near.add(Goal(event.table, event.hook, event.chain, event.index - 1, HIT))
            if rule.actions and _leads_on(rule.actions[0], event.hook):
                goals.services.add(sighting.sent)
            continue
        if isinstance(failed, Assumption):
            continue  # the rule's modelled tests hold; the simulator cannot evaluate the others
        side = _position(rule, failed)
        goal = Goal(event.table, event.hook, event.chain, event.index - 1, side)
        if goal in near:
            continue
        for test in rule.tests[side + 1 :]:
            if holds(test, sighting, places, values) is False:
                far.add(goal)
                break
        else:
            near.add(goal)


def _leads_on(action: Action, hook: Hook) -> bool:
    """Return whether an action gives the packet another destination."""
    if isinstance(action, Netmap):
        return hook in (Hook.PREROUTING, Hook.OUTPUT)
    return isinstance(action, Dnat | Redirect)


def _position(rule: Rule, test: Test) -> int:
    for index, candidate in enumerate(rule.tests):
        if candidate is test:
            return index
    return rule.tests.index(test)


def holds(test: Test, sighting: Sighting, places: Places, values: dict[Field, object]) -> bool | None:
    """Return whether the packet passes the test, or None when a sighting does not determine it.

    ``values`` caches the fields of the sighting; pass an empty dictionary with a new sighting.
    """
    match test:
        case FieldTest():
            return _field_holds(test, sighting, places, values)
        case AnyOf():
            parts = [_field_holds(t, sighting, places, values) for t in test.tests]
            if True in parts:
                return not test.negated
            return None if None in parts else test.negated
        case SetTest(filled=False):
            return _set_holds(test, sighting, places)
        case SetUpdate():
            return True
        case _:
            return None


def _set_holds(test: SetTest, sighting: Sighting, places: Places) -> bool | None:
    members = places.sets.get(test.name)
    if members is None:
        return None
    proto = sighting.packet.proto
    if members.set.type is SetType.BITMAP_PORT and proto not in (Protocol.TCP, Protocol.UDP):
        return test.negated
    key: list[int] = []
    for part in members.set.fields(test.directions):
        value = _value(part, sighting, places)
        if not isinstance(value, int):
            return None  # a port that the kernel picks, or a field that is not a number
        key.append(value)
    return (members.decides(tuple(key)) is (not test.nomatch)) != test.negated


def _field_holds(
    test: FieldTest, sighting: Sighting, places: Places, values: dict[Field, object]
) -> bool | None:
    value = values.get(test.field, values)
    if value is values:
        value = values[test.field] = _value(test.field, sighting, places)
    if value is NotImplemented:
        return None
    if value is None:
        return False
    if isinstance(value, int):
        masked = value if test.mask is None else value & test.mask
        for interval in test.values:
            if isinstance(interval, Interval) and interval.low <= masked <= interval.high:
                return not test.negated
        return test.negated
    if isinstance(value, str):
        return any(isinstance(v, Name) and v.matches(value) for v in test.values) != test.negated
    return None  # a port that the kernel picks


def _owner(field: Field, sighting: Sighting) -> int | None:
    """Return the owner of a packet made on the node; None for a received packet."""
    if field is Field.SOCKET:
        return int(not sighting.iif)
    if field is Field.SOCKET_CLASS:
        return None if sighting.iif else 0
    owner = sighting.packet.uid if field is Field.SOCKET_UID else sighting.packet.gid
    return None if sighting.iif else owner


def _value(field: Field, sighting: Sighting, places: Places) -> object:
    """Return the field's value, None when the packet lacks it, NotImplemented when it is not known."""
    packet = sighting.packet
    match field:
        case Field.SADDR:
            return packet.src
        case Field.DADDR:
            return packet.dst
        case Field.L4PROTO:
            return packet.proto
        case Field.SPORT:
            return packet.sport if packet.has_ports else None
        case Field.DPORT:
            return packet.dport if packet.has_ports else None
        case Field.ICMP_TYPE:
            return packet.icmp_type or 0 if packet.is_icmp else None
        case Field.ICMP_CODE:
            return packet.icmp_code or 0 if packet.is_icmp else None
        case Field.TCP_FLAGS:
            has_flags = packet.proto == Protocol.TCP and not packet.is_headless
            return int(packet.flags) if has_flags else None
        case Field.MARK:
            return sighting.mark
        case Field.SOCKET_UID | Field.SOCKET_GID | Field.SOCKET_CLASS | Field.SOCKET:
            return _owner(field, sighting)
        case Field.IPSEC_IN | Field.IPSEC_OUT | Field.IPSEC_IN_STATES | Field.IPSEC_OUT_STATES | Field.TAKER:
            return 0
        case _ if field in IPSEC_STATES:
            return None
        case Field.BRIDGED | Field.BRIDGED_ON:
            return 0
        case Field.BRIDGE_PORT_IN | Field.BRIDGE_PORT_OUT:
            return ""
        case Field.IIF:
            return sighting.iif
        case Field.OIF:
            return sighting.oif
        case Field.IIF_GROUP:
            return places.node.group_of(sighting.iif) if sighting.iif else None
        case Field.OIF_GROUP:
            return places.node.group_of(sighting.oif) if sighting.oif else None
        case Field.CT_STATE:
            return int(sighting.state)
        case Field.CT_STATUS:
            # NAT may have bound the connection after the Tracked event.
            return NotImplemented if sighting.state is ConnectionState.NEW else int(sighting.status)
        case Field.FIB_SADDR_TYPE:
            return int(places.kind(packet.src))
        case Field.FIB_DADDR_TYPE:
            return int(places.kind(packet.dst))
        case _ if field in CLOCKS:
            return NotImplemented if packet.time is None else clock_value(field, packet.time)
        case _ if field in HEADER_FIELDS:
            return header_value(field, packet, sighting.iif, places.node)
        case _:
            return NotImplemented
