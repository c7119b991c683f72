"""Functions that evaluate the tests of rules, made once per rule instead of once per packet."""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Final, assert_never

from backends.model.packet import PortClass
from backends.simulator.chance.ports import PickedPort
from backends.simulator.conntrack.skb import SocketKind
from backends.simulator.matching.bytecode import takes
from backends.simulator.matching.fields import port_reader, reader
from backends.simulator.matching.headeroptions import options_hold
from backends.simulator.matching.memory import Memory
from backends.simulator.matching.undecided import Undecided
from backends.simulator.matching.view import Reader, Value, View
from backends.simulator.matching.words import words_hold
from backends.simulator.nat.hashing import jhash2, reciprocal_scale
from translate.ir import (
    RANDOM_RANGE,
    Account,
    AnyOf,
    BytecodeTest,
    CgroupTest,
    ClusterShare,
    ConnectionLimit,
    ConnLabel,
    Family,
    Field,
    FieldTest,
    HashLimit,
    HeaderOptions,
    Interval,
    Limit,
    Name,
    Nth,
    PacketType,
    Protocol,
    Quota,
    Random,
    Recent,
    Rule,
    SetDirection,
    SetTest,
    SetUpdate,
    Test,
    WordTest,
)

__all__ = ["Condition", "condition", "hidden_condition"]


Condition = Callable[[View, Memory], bool]


def hidden_condition(rule: Rule, place: object) -> Condition:
    """Return the function that evaluates the hidden part of a rule; ``place`` is unique to the rule.

    It raises :class:`~backends.simulator.matching.undecided.Undecided` if the rule's action is hidden.
    """
    return lambda view, memory: memory.assumptions.matches(rule, place, view)


def condition(test: Test, place: object, *, idle: bool = False) -> Condition:
    """Return the function that evaluates ``test``; ``place`` is unique to the test.

    ``idle``: the outcome of a packet does not depend on whether the rule matches.
    """
    match test:
        case FieldTest():
            return _field(test)
        case AnyOf():
            return _any_of(test)
        case Random():
            return _random(test)
        case Nth():
            return _nth(test, place)
        case Limit():
            return _limit(test, place, idle=idle)
        case HashLimit():
            return partial(_hash_limit, test)
        case Quota():
            return partial(_quota, test, place)
        case ConnectionLimit():
            return lambda view, memory: memory.connections.matches(test, place, view.skb)
        case Recent():
            return _recent(test)
        case Account():
            return lambda _view, _memory: True
        case SetTest():
            return _set(test)
        case WordTest():
            return lambda view, _memory: words_hold(test, view.skb)
        case HeaderOptions():
            return lambda view, _memory: options_hold(test, view.skb.packet)
        case BytecodeTest():
            return lambda view, _memory: takes(test, view.skb)
        case CgroupTest():
            return partial(_cgroup, test)
        case SetUpdate():
            return partial(_update, test)
        case ConnLabel():
            return partial(_label, test)
        case ClusterShare():
            return partial(_cluster, test)
        case _:
            assert_never(test)


def _field(test: FieldTest) -> Condition:
    return partial(_of_header, test, _plain_field(test)) if test.reads_data else _plain_field(test)


def _of_header(test: FieldTest, read: Condition, view: View, memory: Memory) -> bool:
    """Evaluate a test that the kernel evaluates on data of later fragments, too (``match_tcp``)."""
    packet = view.skb.packet
    if packet.truncated and test.field is Field.TCP_FLAGS:
        return False  # match_tcp of xt_ecn drops nothing
    if packet.is_later_fragment and packet.proto == Protocol.TCP:
        raise Undecided(f"the kernel reads {test.field.text} from data of a later fragment")
    return read(view, memory)


def _of_timer(test: FieldTest, view: View, memory: Memory) -> bool:
    """Evaluate a test of a timer, which may have run for some seconds since the last packet."""
    value = reader(test.field)(view)
    if not isinstance(value, int):
        return _in_values(test, value, memory)
    results = {_in_values(test, max(value - passed, 0), memory) for passed in range(_PASSED)}
    if len(results) > 1:
        raise Undecided("--ctexpire compares a timer with a limit that it has nearly reached")
    return results.pop()


_PASSED: Final = 3
"""The seconds that a timer of the node may be behind that of the simulator, and one more."""


def _plain_field(test: FieldTest) -> Condition:
    if test.field is Field.CT_EXPIRES:
        return partial(_of_timer, test)
    # Partial functions, because a big ruleset has many, and a closure takes longer to make.
    read = port_reader(test.field) if test.reads_ports else reader(test.field)
    match test.values:
        case (Interval(low, high),) if low == high and test.mask is None and not test.negated:
            return partial(_is, low, read, test)
        case (Interval(low, high),):
            return partial(_in_interval, test, read, low, high)
        case _:
            return partial(_in_any, test, read)


def _is(number: int, read: Reader, test: FieldTest, view: View, memory: Memory) -> bool:
    value = read(view)
    return value == number if isinstance(value, int) else _in_values(test, value, memory)


def _in_interval(test: FieldTest, read: Reader, low: int, high: int, view: View, memory: Memory) -> bool:
    value = read(view)
    if not isinstance(value, int):
        return _in_values(test, value, memory)
    if test.mask is not None:
        value &= test.mask
    return (low <= value <= high) != test.negated


def _in_any(test: FieldTest, read: Reader, view: View, memory: Memory) -> bool:
    return _in_values(test, read(view), memory)


def _in_values(test: FieldTest, value: Value, memory: Memory) -> bool:
    match value:
        case int():
            if test.mask is not None:
                value &= test.mask
            matched = any(isinstance(v, Interval) and v.low <= value <= v.high for v in test.values)
        case None:
            return False
        case str():
            matched = any(isinstance(v, Name) and v.matches(value) for v in test.values)
        case PortClass():
            assert isinstance(value, PickedPort)
            matched = memory.ports.within(value, _ports(test))
        case _:
            assert_never(value)
    return matched != test.negated


def _ports(test: FieldTest) -> tuple[Interval, ...]:
    """Return the ports that pass the test before negation."""
    intervals = tuple(v for v in test.values if isinstance(v, Interval))
    if test.mask is None:
        return intervals
    mask = test.mask
    return tuple(Interval.point(p) for p in range(0x10000) if any(p & mask in v for v in intervals))


def _any_of(test: AnyOf) -> Condition:
    parts, negated = tuple(_field(t) for t in test.tests), test.negated
    return lambda view, memory: any(part(view, memory) for part in parts) != negated


def _random(test: Random) -> Condition:
    numerator, negated = test.numerator, test.negated
    return lambda _view, memory: memory.chance.draw(numerator, RANDOM_RANGE) != negated


def _nth(test: Nth, place: object) -> Condition:
    """Return the condition of ``-m statistic --mode nth`` (``statistic_mt``).

    The counter outlives flows, so its value is unknown when a flow first reaches it, and every value is
    equally likely. From then on it counts.
    """
    weights = (Fraction(1, test.every),) * test.every

    def holds(view: View, memory: Memory) -> bool:
        count = memory.counters.get(place)
        if count is None:
            count = memory.chance.choose(weights)
        memory.counters[place] = (count + 1) % test.every
        return (count == test.packet) != test.negated

    return holds


def _limit(test: Limit, place: object, *, idle: bool) -> Condition:
    """Return the condition of a Limit (``limit_mt``).

    The time at which the bucket is full again represents its level. The kernel counts time in jiffies. Here
    it is exact, so the kernel may decide differently within a jiffy of the time at which a token is added.
    """
    interval, capacity = test.interval, test.capacity

    def holds(_view: View, memory: Memory) -> bool:
        buckets = memory.idle_buckets if idle else memory.buckets
        now = round(memory.lists.now * 10**9)
        full = max(now, buckets.get(place, 0)) + interval
        if full - now > capacity:
            return False
        buckets[place] = full
        return True

    return holds


def _hash_limit(test: HashLimit, view: View, memory: Memory) -> bool:
    return memory.tables.matches(test, view.skb.packet, round(memory.lists.now * 10**9))


def _quota(test: Quota, place: object, view: View, memory: Memory) -> bool:
    """Take a packet from a quota (``quota_mt``); a packet longer than the rest uses it up, too."""
    left = memory.quotas.get(place, test.size)
    within = left >= view.skb.packet.length
    memory.quotas[place] = left - view.skb.packet.length if within else 0
    return within is not test.negated


def _recent(test: Recent) -> Condition:
    source = test.side is SetDirection.SRC

    def holds(view: View, memory: Memory) -> bool:
        packet = view.skb.packet
        address = packet.src if source else packet.dst
        # In hooks with an output interface the TTL of a forwarded packet is already decremented (recent_mt).
        ttl = packet.ttl + 1 if view.oif and view.skb.dev else packet.ttl
        return memory.lists.matches(test, address, ttl)

    return holds


def _set(test: SetTest) -> Condition:
    """Return the condition of a set test; a packet that lacks a key field is in no set (``set_match_v4``)."""
    name, negated, directions, member = test.name, test.negated, test.directions, not test.nomatch
    if test.filled:
        return partial(_filled_set, test, member)
    return lambda view, memory: memory.sets[name].holds(directions, view, memory.ports, member) != negated


def _filled_set(test: SetTest, member: bool, view: View, memory: Memory) -> bool:
    members = memory.sets.at(test.name, memory.lists.now)
    return members.holds(test.directions, view, memory.ports, member) != test.negated


def _update(test: SetUpdate, view: View, memory: Memory) -> bool:
    memory.sets.update(test, view, memory.lists.now)
    return True


def _label(test: ConnLabel, view: View, _memory: Memory) -> bool:
    """Evaluate a test of a label (``connlabel_mt``), which no packet without a connection has."""
    entry, bit = view.skb.entry, 1 << test.number
    if entry is None or entry.template is not None:
        return test.negated
    known = bool(entry.labels & bit)
    if not known and not test.add:
        return test.negated
    entry.labels |= bit
    return not test.negated


def _cgroup(test: CgroupTest, view: View, _memory: Memory) -> bool:
    """Evaluate a test of a path: which cgroup the sender belongs to is no part of a flow."""
    if view.skb.socket is SocketKind.NONE:
        return test.negated
    raise Undecided(f"the sender may belong to the cgroup {test.path}")


def _cluster(test: ClusterShare, view: View, _memory: Memory) -> bool:
    skb = view.skb
    packet = skb.packet
    if skb.type is PacketType.MULTICAST and packet.dst not in _GROUPS[packet.family]:
        skb.for_this_machine = True
    if skb.entry is None:
        return False
    # The kernel uses NF_CT_TUPLE_L3SIZE, a number of words, as a number of bytes: of an IPv6 address it
    # hashes the first word only.
    source = skb.entry.original.src.to_bytes(packet.family.bits // 8, "big")
    word = int.from_bytes(source[:4], sys.byteorder)
    node = reciprocal_scale(jhash2((word,), test.seed), test.total)
    return bool(test.nodes >> node & 1) is not test.negated


_GROUPS: Final = {
    Family.IP: Interval(0xE0000000, 0xEFFFFFFF),
    Family.IP6: Interval(0xFF << 120, (1 << 128) - 1),
}
"""The multicast addresses of each family (``xt_cluster_is_multicast_addr``)."""
