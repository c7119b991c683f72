"""Packets drawn around one statement.

A *witness* is a packet that passes all tests of the statement; there is one for each alternative. The other
packets differ from a witness in one field. The field's value is at or next to an end of a range that a test
accepts. So each test alone decides about some packet, and a test that is missing, too strict or too loose has
a visible effect.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from tests.lab.bytecode.clocks import FRACTIONS, at_times
from tests.lab.bytecode.conditions import World, holds
from tests.lab.bytecode.samples import EXTENSIONS, NEVER_SEEN, TRACKED, Sample, State
from translate.ir import (
    AUTHENTICATION,
    INDEX_PROTOCOLS,
    IPSEC_DEPTH,
    IPSEC_STATES,
    PORT_PROTOCOLS,
    RANDOM_RANGE,
    REVERSE_PATHS,
    AddressType,
    AnyOf,
    Choose,
    ConnectionLimit,
    ConnectionState,
    ConnSecmark,
    Family,
    Field,
    FieldTest,
    HashLimit,
    Interval,
    Limit,
    Lookup,
    Name,
    Nth,
    Protocol,
    Quota,
    Random,
    Recent,
    RestoreSocketMark,
    SetTest,
    Statement,
    SynProxy,
    TcpFlag,
    Test,
    Value,
    alternatives,
    field_bits,
)
from translate.nft.timers import LAST_SECOND

__all__ = ["distinguished_fields", "draw_samples"]

_ENTRIES: Final = 4
"""The number of keys of a lookup, or elements of a set, that get a witness of their own."""

_MOST_VALUES: Final = 12
"""The number of values of one field tried next to a witness."""

_TRIES: Final = 16
"""The most attempts at a packet that passes all tests of a rule."""

_MIXED: Final = 16
"""The number of packets that differ from a witness in several fields."""

_ICMP: Final = {Family.IP: Protocol.ICMP, Family.IP6: Protocol.ICMPV6}
_ICMP_FIELDS: Final = frozenset({Field.ICMP_TYPE, Field.ICMP_CODE})
_SOCKET_MARKS: Final = (0x70, None)
"""Marks of the socket that takes a packet; the socket of a request has none."""
_LABELS: Final = (
    *((0, 0), (5, 0), (0x50000, 0), (0, 9), (0, 0x90000), (5, 9)),
    *((0x8000, 9), (5, 0x8000), (1 << 31, 9), (5, 1 << 31)),
)
"""Labels of packets and their connections for a security module."""
_OF_TCP: Final = frozenset({Field.TCP_FLAGS, Field.TCP_MSS, Field.TCP_OPTIONS})
_OF_SCTP: Final = frozenset({Field.SPORT, Field.DPORT, Field.SCTP_CHUNKS, Field.DCCP_TYPE})
_HEADER_FIELDS: Final = _ICMP_FIELDS | _OF_TCP | _OF_SCTP | AUTHENTICATION | {*INDEX_PROTOCOLS}
_EXTRAS: Final = frozenset({Field.TCP_MSS, *chain.from_iterable(EXTENSIONS.values())})
"""Fields of headers and options that most packets lack."""
_SOURCE: Final = {Family.IP: 0xC6336407, Family.IP6: 0x20010DB8 << 96 | 7}
"""An address that has no type by itself: 198.51.100.7 and 2001:db8::7."""

_AGES: Final = ((NEVER_SEEN,), (0,), (10**6,), (0, NEVER_SEEN), (NEVER_SEEN, 0))
_KINDS: Final = (None, "bridge", "veth")


def draw_samples(statement: Statement, world: World, seed: int) -> Iterator[Sample]:
    """Yield packets around the tests of ``statement``. The same seed draws the same packets."""
    drawer = _Drawer(statement, world, random.Random(seed))
    for conjunction in drawer.conjunctions():
        witness = drawer.witness(conjunction)
        yield witness
        yield from drawer.beside(witness)
        for _ in range(_MIXED):
            yield drawer.mixed(witness)


def distinguished_fields(statement: Statement, world: World) -> tuple[Field, ...]:
    """Return the fields by which the statement distinguishes packets, in order of name."""
    return tuple(_Drawer(statement, world, random.Random(0)).distinguished_fields())


@dataclass(slots=True)
class _Drawer:
    statement: Statement
    world: World
    draw: random.Random
    tested: list[FieldTest] = field(default_factory=list)

    def __post_init__(self) -> None:
        for conjunction in self.conjunctions():
            self.tested += [test for test in conjunction if test not in self.tested]

    # -- the tests of the statement --------------------------------------------------------------

    def conjunctions(self) -> Iterator[tuple[FieldTest, ...]]:
        """Yield conjunctions of field tests under which the statement has an effect."""
        always: list[FieldTest] = []
        choices: list[list[tuple[FieldTest, ...]]] = []
        for test in self.statement.tests:
            match test:
                case FieldTest():
                    always.append(test)
                case AnyOf(tests=tests, negated=False):
                    choices.append([(part,) for part in tests])
                case AnyOf(tests=tests):
                    always += [_opposite(part) for part in tests]
                case SetTest(name=name, directions=directions):
                    known = self.world.sets[name]
                    keys = [element.key for element in known.elements]
                    choices.append(self._keyed(known.fields(directions), keys))
                case _:
                    pass
        if isinstance(self.statement, Lookup):
            choices.append(self._keyed(self.statement.fields, [e.key for e in self.statement.entries]))
        longest = max(map(len, choices), default=1)
        for turn in range(longest):
            yield (
                *always,
                *chain.from_iterable(
                    conjunctions[turn % len(conjunctions)] for conjunctions in choices if conjunctions
                ),
            )

    def _keyed(
        self, fields: Sequence[Field], keys: Sequence[tuple[Value, ...]]
    ) -> list[tuple[FieldTest, ...]]:
        some = keys if len(keys) <= _ENTRIES else [keys[0], keys[-1], *self.draw.sample(keys[1:-1], 2)]
        return [
            tuple(FieldTest(field=f, values=(v,)) for f, v in zip(fields, key, strict=True)) for key in some
        ]

    def values(self, field: Field) -> list[int | str]:
        """Return values of a field around those that tests compare with, and some others."""
        values: dict[int | str, None] = {}
        for test in self.tested:
            if test.field is field:
                values.update(dict.fromkeys(_around(test, self.world.family)))
        if len(values) > _MOST_VALUES:
            values = dict.fromkeys(self.draw.sample(sorted(values, key=str), _MOST_VALUES))
        values.update(dict.fromkeys(self._usual(field)))
        return list(values)

    def _usual(self, field: Field) -> tuple[int | str, ...]:
        bits = field_bits(field, self.world.family)
        match field:
            case Field.L4PROTO | Field.CT_PROTO:
                icmp = _ICMP[self.world.family]
                return (Protocol.TCP, Protocol.UDP, icmp, Protocol.SCTP, Protocol.DCCP, 99)
            case Field.CT_STATE:
                return tuple(ConnectionState)
            case Field.CT_HELPER:
                return ("", "ftp", "other")
            case Field.IIF | Field.OIF:
                return ("", "lo", "eth0", "other")
            case Field.CT_EXPIRES:  # nft counts milliseconds with 32 bits (docs/limits.md)
                return (0, self.draw.randrange(LAST_SECOND), LAST_SECOND - 1)
            case _ if field.name.startswith("FIB_"):
                known = (AddressType.UNICAST, AddressType.LOCAL, AddressType.BROADCAST, AddressType.MULTICAST)
                return known if self.world.family is Family.IP else (AddressType.UNSPEC, AddressType.LOCAL)
            case _:
                return (0, self.draw.getrandbits(bits), (1 << bits) - 1)

    # -- packets ---------------------------------------------------------------------------------

    def witness(self, conjunction: tuple[FieldTest, ...]) -> Sample:
        """Return a packet that passes the tests of ``conjunction``, unless none of a few does.

        A value of one field may exclude one of another, as the segments left of a routing header.
        """
        sample = self._apart(conjunction)
        for _ in range(_TRIES):
            state = State(sample)
            if all(holds(test, state.get(test.field)) for test in conjunction):
                break
            sample = self._apart(conjunction)
        return sample

    def _apart(self, conjunction: tuple[FieldTest, ...]) -> Sample:
        """Return a packet whose fields, each by itself, pass the tests."""
        fields = {test.field for test in conjunction}
        known = {f: self._any(f) for f in Field if f not in _ICMP_FIELDS}
        known |= {Field.FRAGMENT: 0, Field.CT_STATE: self.draw.choice(tuple(TRACKED))}
        known |= {Field.SOCKET: 1, Field.TAKER: 1}
        known[Field.SADDR] = _SOURCE[self.world.family]
        sample = Sample(
            family=self.world.family,
            values=known,
            # The lowest number is within every share.
            draw=0 if self._asks(Random) else self.draw.getrandbits(31),
            count=self._count(),
            ages=(0,),
            kind="veth",
            fraction=self.draw.choice(FRACTIONS),
        )
        order = sorted(fields | {Field.L4PROTO}, key=lambda f: (f is Field.ROUTING_IN_ORDER, f.name))
        for tested in order:
            tests = [test for test in conjunction if test.field is tested]
            values = [v for v in self.values(tested) if all(holds(test, v) for test in tests)]
            if tested is Field.L4PROTO:
                # a rule of IPv6 with AH does not test for its protocol
                extended = [*values, INDEX_PROTOCOLS[Field.AH_SPI]] if fields & AUTHENTICATION else values
                values = self._protocols(extended, fields) or values
            if tested is Field.CT_STATE and any(f.is_connection for f in fields):
                values = [v for v in values if v in TRACKED] or values
            if values:
                sample = sample.having(tested, self.draw.choice(values))
        return sample

    def _asks(self, kind: type[Test]) -> bool:
        return any(isinstance(test, kind) for test in self.statement.tests)

    def _count(self) -> int:
        """Return the state of counters that let a packet pass."""
        counters = [test for test in self.statement.tests if isinstance(test, Nth)]
        stands = range(max((test.every for test in counters), default=1) * 2)
        passing = (n for n in stands if all((n % t.every == t.packet) is not t.negated for t in counters))
        return next(passing, 0)

    def _any(self, field: Field) -> int | str:
        return self.draw.choice(self._usual(field))

    def _protocols(self, values: Sequence[int | str], fields: Iterable[Field]) -> list[int | str]:
        """Return the protocols that have the tested headers."""
        having = set(values)
        for tested in _HEADER_FIELDS.intersection(fields):
            if tested in AUTHENTICATION:
                having &= {INDEX_PROTOCOLS[Field.AH_SPI]}
            elif tested in INDEX_PROTOCOLS:
                having &= {INDEX_PROTOCOLS[tested]}
            elif tested in _ICMP_FIELDS:
                having &= {_ICMP[self.world.family]}
            else:
                having &= {Protocol.TCP} if tested in _OF_TCP else PORT_PROTOCOLS
            if tested is Field.SCTP_CHUNKS:
                having &= {Protocol.SCTP}
            if tested is Field.DCCP_TYPE:
                having &= {Protocol.DCCP}
        return [value for value in values if value in having]

    def distinguished_fields(self) -> list[Field]:
        """Return the fields whose values may affect the result."""
        fields = {test.field for test in self.tested} | {Field.L4PROTO, Field.CT_STATE}
        fields |= {Field.SADDR} if fields & REVERSE_PATHS else set()
        fields |= {Field.FRAGMENT} if fields & _HEADER_FIELDS else set()
        fields |= {Field.SOCKET} if any(f.name.startswith("SOCKET") for f in fields) else set()
        fields |= {Field.TAKER} if any(f.name.startswith("TAKER") for f in fields) else set()
        return sorted(fields, key=lambda f: f.name)

    def beside(self, witness: Sample) -> Iterator[Sample]:
        """Yield packets that differ from a witness in one property."""
        for tested in self.distinguished_fields():
            for value in self.values(tested):
                yield witness.having(tested, value)
        yield from self._chances(witness)

    def _chances(self, witness: Sample) -> Iterator[Sample]:
        """Yield packets that differ in kernel state or in random draws."""
        tests = self.statement.tests
        draws: set[int] = set()
        for test in tests:
            if isinstance(test, Random):
                draws |= {0, test.numerator - 1, test.numerator, RANDOM_RANGE - 1}
            if isinstance(test, Nth):
                for count in {0, test.packet, test.packet + 1, test.every - 1, test.every}:
                    yield replace(witness, count=count)
        if isinstance(self.statement, Choose):
            low = 0
            for branch in self.statement.branches:
                draws |= {low, low + branch.weight // 2, low + branch.weight - 1}
                low += branch.weight
        for drawn in sorted(draws):
            if 0 <= drawn < RANDOM_RANGE:
                yield replace(witness, draw=drawn)
        if any(map(self._asks, (Limit, HashLimit, ConnectionLimit, Quota))):
            yield replace(witness, within=False)
        if self._asks(Recent):
            for ages in _AGES:
                yield replace(witness, ages=ages)
        fields = {test.field for test in self.tested}
        if fields & REVERSE_PATHS:
            back = witness.having(Field.REVERSE_PATH, 1)
            for source in (0, 0xFFFFFFFF):
                yield back.having(Field.SADDR, source)
            if self.world.family is Family.IP:  # IPv6 has no broadcast addresses
                yield replace(back, broadcast_back=True)
                yield back.having(Field.FIB_SADDR_TYPE, AddressType.BROADCAST)
        if Field.ETHER_SADDR in fields:
            yield replace(witness, ether=False)
        if fields & _EXTRAS:
            yield replace(witness, extended=False)
            yield from (replace(witness, lacking=number) for number in EXTENSIONS)
        clock, hours = self.values(Field.CLOCK), self.values(Field.CLOCK_DAYTIME)
        yield from at_times(witness, fields, clock, hours)
        actions = [action for each in alternatives(self.statement) for action in each.actions]
        if any(isinstance(action, ConnSecmark) for action in actions):
            for labels in _LABELS:
                yield replace(witness, labels=labels)
        if any(isinstance(action, SynProxy) for action in actions):
            yield from (witness.having(Field.TCP_FLAGS, int(flag)) for flag in (TcpFlag.SYN, TcpFlag.ACK))
        if any(isinstance(action, RestoreSocketMark) for action in actions):
            for mark in _SOCKET_MARKS:
                yield replace(witness, socket_mark=mark)
        if fields & {Field.SOCKET, Field.SOCKET_UID, Field.SOCKET_GID}:
            yield replace(witness.having(Field.SOCKET, 1), owned=False)
        if fields & IPSEC_STATES:
            for states in range(IPSEC_DEPTH + 1):
                yield replace(witness, states=states)
            yield from self._one_state(replace(witness, states=IPSEC_DEPTH))
        if Field.BRIDGED in fields:
            for kind in _KINDS:
                yield replace(witness, kind=kind)

    def _one_state(self, witness: Sample) -> Iterator[Sample]:
        """Yield packets with several states of IPsec, one of which passes the test."""
        for test in self.statement.tests:
            if not isinstance(test, AnyOf) or not {part.field for part in test.tests} <= IPSEC_STATES:
                continue
            for chosen in test.tests:
                (value,) = chosen.values
                assert isinstance(value, Interval)
                for other in (value.low >> 1, value.low ^ 1):
                    several = witness
                    for part in test.tests:
                        passes = part is chosen
                        wanted = value.low if passes is not part.negated else other
                        several = several.having(part.field, wanted)
                    yield several

    def mixed(self, witness: Sample) -> Sample:
        """Return a packet that differs in several fields, most of which are tested."""
        for tested in self.distinguished_fields():
            if self.draw.random() < 0.3:
                witness = witness.having(tested, self.draw.choice(self.values(tested)))
        return replace(
            witness,
            draw=self.draw.getrandbits(31),
            count=self.draw.randrange(16),
            ages=self.draw.choice(_AGES),
            ether=self.draw.random() < 0.8,
            extended=self.draw.random() < 0.8,
            lacking=self.draw.choice((None, None, *EXTENSIONS)),
            labels=self.draw.choice(_LABELS),
            states=self.draw.randint(0, IPSEC_DEPTH),
            kind=witness.kind if self.draw.random() < 0.5 else self.draw.choice(_KINDS),
        )


def _opposite(test: FieldTest) -> FieldTest:
    return FieldTest(field=test.field, values=test.values, mask=test.mask, negated=not test.negated)


def _around(test: FieldTest, family: Family) -> Iterator[int | str]:
    """Return both ends of every value and their neighbours; with a mask also values with other bits."""
    if test.field.is_name:
        for value in test.values:
            assert isinstance(value, Name)
            yield from (value.text, value.text[:-1], f"{value.text}0"[:15])
        return
    highest = (1 << field_bits(test.field, family)) - 1
    if test.field is Field.CT_STATE:
        return
    for value in test.values:
        assert isinstance(value, Interval)
        for v in (value.low, value.high, value.low - 1, value.high + 1):
            if 0 <= v <= highest:
                yield v
        if test.mask is not None:
            outside = highest & ~test.mask
            inside = [1 << n for n in range(highest.bit_length()) if test.mask >> n & 1]
            yield value.low | outside
            yield from (value.low ^ bit for bit in (*inside[:1], *inside[-1:]))
