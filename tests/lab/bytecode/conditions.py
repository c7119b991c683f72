"""The value of a test for a packet, in terms of :mod:`tests.lab.bytecode.samples`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from tests.lab.bytecode.headers import network, transport
from tests.lab.bytecode.samples import State
from translate.ir import (
    RANDOM_RANGE,
    SET_PORT_PROTOCOLS,
    Account,
    AnyOf,
    BytecodeTest,
    Cell,
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
    IpSet,
    Limit,
    Name,
    Nth,
    Quota,
    Random,
    Recent,
    RecentMode,
    SetDirection,
    SetTest,
    SetType,
    SetUpdate,
    Test,
    Word,
    WordOperator,
    WordTest,
)

__all__ = ["World", "holds", "is_value", "test_holds"]


@dataclass(frozen=True, slots=True)
class World:
    """The objects of a statement: ipsets by name, and the timeouts of each list of ``-m recent``."""

    family: Family
    sets: Mapping[str, IpSet]
    lists: Mapping[str, tuple[int | None, ...]]


def holds(test: FieldTest, value: int | str | None) -> bool:
    """Return whether a test of a field is true of this value; None is an absent field."""
    if value is None:
        return False
    if isinstance(value, int) and test.mask is not None:
        value &= test.mask
    return any(is_value(value, wanted) for wanted in test.values) is not test.negated


def is_value(value: int | str | None, wanted: Interval | Name) -> bool:
    """Return whether a number is in the interval, or a text matches the name."""
    if isinstance(wanted, Name):
        return isinstance(value, str) and wanted.matches(value)
    return isinstance(value, int) and value in wanted


def test_holds(test: Test, state: State, world: World) -> bool:
    """Return whether a test holds for the packet of ``state``."""
    match test:
        case FieldTest():
            return holds(test, state.get(test.field))
        case AnyOf(tests=tests, negated=negated):
            return any(holds(part, state.get(part.field)) for part in tests) is not negated
        case Random(numerator=numerator, negated=negated):
            # The number of draws that hold matters, not which of them hold.
            return state.sample.draw < (RANDOM_RANGE - numerator if negated else numerator)
        case Nth(every=every, packet=packet, negated=negated):
            state.note("count up", every)
            return (state.sample.count % every == packet) is not negated
        case HashLimit(name=name):
            state.note("take", name)
            return state.sample.within is not test.above
        case ConnectionLimit(state=name, limit=limit):
            state.note("take", name, limit)
            return state.sample.within is not test.above
        case Quota(state=state_name):
            state.note("take", state_name)
            return state.sample.within is not test.negated
        case Limit(bucket=bucket):
            state.note("take", bucket)
            return state.sample.within
        case SetTest():
            return _member(test, state, world) is not test.negated
        case WordTest():
            data = network(state) + transport(state)
            return all(_word(word, data) for word in test.words) is not test.negated
        case Recent():
            return _recent(test, state, world) is not test.negated
        case ConnLabel() | ClusterShare() | CgroupTest():
            raise AssertionError("statements with labels, hashes of connections and cgroups are left out")
        case HeaderOptions() | BytecodeTest():
            raise AssertionError("refused by nftables")
        case SetUpdate():
            raise AssertionError("statements that change sets are left out")
        case Account(name=name):
            state.note("count", name)
            return True
        case _:
            assert_never(test)


def _member(test: SetTest, state: State, world: World) -> bool:
    known = world.sets[test.name]
    sample = state.sample
    proto = sample.number(Field.L4PROTO)
    ported = proto in SET_PORT_PROTOCOLS
    if known.type is SetType.BITMAP_PORT and sample.values[Field.L4PROTO] not in (6, 17):
        return False
    if Cell.PORT in known.type.cells and (not ported or sample.fragment):
        return (
            False  # an element without ports is refused, and a packet without ports matches no other element
        )
    key = [sample.number(field) for field in known.fields(test.directions)]
    fitting = [
        element for element in known.elements if all(v in i for v, i in zip(key, element.key, strict=True))
    ]
    # Among networks the longest prefix decides, which is the smallest interval.
    best = min(fitting, key=lambda e: sum(i.size for i in e.key), default=None)
    return best is not None and best.nomatch is test.nomatch


def _word(word: Word, data: bytes) -> bool:
    """Evaluate one word of ``u32_match_it``."""
    base, at = 0, word.offset
    value = int.from_bytes(data[at : at + 4], "big") if at + 4 <= len(data) else None
    for operator, number in word.steps:
        if value is None:
            return False
        match operator:
            case WordOperator.AND:
                value &= number
            case WordOperator.LEFT:
                value = value << number & 0xFFFFFFFF
            case WordOperator.RIGHT:
                value >>= number
            case WordOperator.AT:
                base += value
                at = base + number
                value = int.from_bytes(data[at : at + 4], "big") if at + 4 <= len(data) else None
    return value is not None and any(value in interval for interval in word.values)


def _recent(test: Recent, state: State, world: World) -> bool:
    """Evaluate ``recent_mt``, without hit counts above one and TTLs, which emitters refuse."""
    side = Field.SADDR if test.side is SetDirection.SRC else Field.DADDR
    address = state.sample.number(side) & test.mask
    key = address.to_bytes(world.family.bits // 8, "big")
    for more in test.key:
        value = state.get(more)
        if value is None:
            return False
        key += _register(more, value, world.family)
    names = tuple(world.lists)
    holds = test.mode is RecentMode.SET or state.has_seen(test.name, test.seconds, key, names)
    changes = holds and test.mode is not RecentMode.RCHECK
    if test.negated and test.mode is RecentMode.UPDATE:  # an entry that is too old becomes a new one
        changes = not holds and state.has_seen(test.name, None, key, names)
    if changes:
        for timeout in world.lists[test.name]:
            state.listed[test.name, timeout, key] = test.mode is not RecentMode.REMOVE
    return holds


def _register(field: Field, value: int | str, family: Family) -> bytes:
    """Return the value of a field in the form in which a concatenation has it."""
    if isinstance(value, str):
        return value.encode().ljust(16, b"\0")
    if field.is_address:
        return value.to_bytes(family.bits // 8, "big")
    width = ((field.bits or 8) + 7) // 8
    order = "big" if field in (Field.SPORT, Field.DPORT) else sys.byteorder
    return value.to_bytes(width, order).ljust(4, b"\0")
