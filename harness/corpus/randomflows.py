"""Random flows around the constants of a ruleset and the addresses of a node.

A packet drawn from all addresses meets no rule. These are drawn where rules decide: at the
addresses, ports and marks that rules and routes name, and one beside them, with now and then
something that no rule names. The same seed, ruleset and node give the same flows.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from backends.flow import Again, Flow, IcmpError, Reply, Send, Step
from backends.node import Node
from backends.packet import Icmp6Type, IcmpType, Packet
from harness.corpus.entry import entry_of
from translate.ir import (
    AnyOf,
    Dnat,
    Family,
    Field,
    FieldTest,
    Interval,
    Masquerade,
    Protocol,
    Redirect,
    Ruleset,
    Snat,
    TcpFlag,
    Test,
    parse_address,
)

__all__ = ["random_flows"]

_STRANGE_FLAGS: Final = (
    TcpFlag.ACK,
    TcpFlag.SYN | TcpFlag.ACK,
    TcpFlag.FIN | TcpFlag.ACK,
    TcpFlag.RST,
    TcpFlag.RST | TcpFlag.ACK,
    TcpFlag.PSH | TcpFlag.ACK,
    TcpFlag.SYN | TcpFlag.FIN,
    TcpFlag.SYN | TcpFlag.URG,
    TcpFlag.FIN,
    TcpFlag(0),
    TcpFlag.FIN | TcpFlag.PSH | TcpFlag.URG,
)
_ADDRESS_FIELDS: Final = frozenset(
    {
        Field.SADDR,
        Field.DADDR,
        Field.CT_ORIGINAL_SADDR,
        Field.CT_ORIGINAL_DADDR,
        Field.CT_REPLY_SADDR,
        Field.CT_REPLY_DADDR,
    }
)
_PORT_FIELDS: Final = frozenset(
    {
        Field.SPORT,
        Field.DPORT,
        Field.CT_ORIGINAL_SPORT,
        Field.CT_ORIGINAL_DPORT,
        Field.CT_REPLY_SPORT,
        Field.CT_REPLY_DPORT,
    }
)
_ODD_ADDRESSES_4: Final = (
    0x00000000,  # 0.0.0.0
    0x7F000001,  # 127.0.0.1
    0x7F000035,  # 127.0.0.53
    0x08080808,  # 8.8.8.8
    0xC0A80101,  # 192.168.1.1
    0xCB007107,  # 203.0.113.7
    0xE0000009,  # 224.0.0.9
    0xEFFFFFFA,  # 239.255.255.250
    0xFFFFFFFF,  # 255.255.255.255
)
_ODD_ADDRESSES: Final = {
    Family.IP: _ODD_ADDRESSES_4,
    Family.IP6: tuple(
        parse_address(Family.IP6, text)
        for text in (
            *("::", "::1", "::ffff:10.0.0.1", "2001:4860:4860::8888", "fd99::1", "fec0::1", "2002:a00:1::1"),
            *("ff02::1", "ff02::2", "ff02::1:ff00:1", "ff01::1", "ff05::2", "ff0e::1"),
        )
    ),
}
_MULTICAST: Final = {Family.IP: 0xE0000000, Family.IP6: 0xFF << 120}
_LOOPBACK: Final = {Family.IP: 0x7F000001, Family.IP6: 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Icmp:
    """The messages to draw: queries and answers, ones without an identifier, errors."""

    proto: Protocol
    queries: tuple[int, ...]
    others: tuple[int, ...]
    errors: tuple[tuple[int, int], ...]
    quoting: tuple[int, ...]


_ICMP: Final = {
    Family.IP: _Icmp(
        proto=Protocol.ICMP,
        queries=(8, 8, 8, 8, 0, 14, 17, 15),
        others=(9, 10, 19, 40),
        errors=((3, 3), (3, 1), (3, 13), (11, 0), (4, 0), (12, 0)),
        quoting=(IcmpType.DEST_UNREACHABLE, IcmpType.TIME_EXCEEDED),
    ),
    Family.IP6: _Icmp(
        proto=Protocol.ICMPV6,
        queries=(128, 128, 128, 128, 129),
        others=(130, 133, 134, 135, 136, 143, 150, 200),
        errors=((1, 4), (1, 0), (1, 1), (3, 0), (4, 0)),
        quoting=(Icmp6Type.DEST_UNREACHABLE, Icmp6Type.TIME_EXCEEDED),
    ),
}
_EPHEMERAL: Final = range(1024, 65536)


@dataclass(frozen=True, slots=True)
class _Target:
    """What one rule asks of a packet, all of it at once; None where it does not ask."""

    src: int | None
    dst: int | None
    proto: int | None
    sport: int | None
    dport: int | None


@dataclass(frozen=True, slots=True)
class _Constants:
    """What the rules and the node name; each sorted, without repetition."""

    targets: tuple[_Target, ...]
    addresses: tuple[int, ...]
    ports: tuple[int, ...]
    marks: tuple[int, ...]
    own: tuple[int, ...]
    loud: frozenset[int]
    interfaces: tuple[str, ...]


def random_flows(ruleset: Ruleset, node: Node, *, seed: int, count: int) -> Iterator[Flow]:
    """Draw ``count`` flows of the ruleset's family. Their ids are ``random-<seed>-<number>``.

    Most have a source port that no other of the last sixty thousand has, so that a kernel can
    replay them without forgetting its connections in between.
    """
    draw = random.Random(seed)
    artist = _Artist(draw, _constants(ruleset, node), node, ruleset.family)
    for number in range(count):
        artist.sport = _EPHEMERAL[(number * 7919) % len(_EPHEMERAL)]
        flow_id = f"random-{seed}-{number}"
        yield Flow(id=flow_id, steps=artist.steps(), why="drawn around the constants of the rules")


@dataclass(slots=True)
class _Artist:
    draw: random.Random
    constants: _Constants
    node: Node
    family: Family
    sport: int = 1024

    def steps(self) -> tuple[Step, ...]:
        """A first packet, and often what may follow it."""
        first = self._send()
        steps: list[Step] = [first]
        if self.draw.random() < 0.5:
            for _ in range(self.draw.randint(1, 4)):
                steps.append(self._next(first))
        return tuple(steps)

    def _next(self, first: Send) -> Step:
        roll = self.draw.random()
        if roll < 0.5:
            return Reply(flags=self._odd_flags(first, 0.1))
        if roll < 0.8:
            return Again(flags=self._odd_flags(first, 0.15))
        if roll < 0.92:
            kind, code = self.draw.choice(_ICMP[self.family].errors)
            source = None if self.draw.random() < 0.6 else self._address()
            return IcmpError(type=kind, code=code, source=source)
        return self._variation(first)

    def _variation(self, first: Send) -> Send:
        """Another connection that nearly is the first."""
        packet = first.packet
        changes: dict[str, object] = {}
        if self.draw.random() < 0.5:
            changes["dst"] = self._address()
        if self.draw.random() < 0.3:
            changes["src"] = self._address()
        if packet.has_ports and self.draw.random() < 0.4:
            changes["dport"] = self._port()
        changed = packet.changed(**changes)
        if first.entry is None or changed.dst == 0:
            loud = not self.constants.loud.isdisjoint((changed.src, changed.dst))
            return Send(packet=packet if loud else changed, entry=first.entry)
        entry = first.entry if self.draw.random() < 0.7 else self._entry(changed.src)
        return Send(packet=changed, entry=entry)

    def _odd_flags(self, first: Send, chance: float) -> TcpFlag | None:
        if first.packet.proto != Protocol.TCP or self.draw.random() >= chance:
            return None
        return self.draw.choice(_STRANGE_FLAGS)

    def _send(self) -> Send:
        made_here = self.draw.random() < 0.25
        own = made_here and self.draw.random() < 0.8
        src = self.draw.choice(self.constants.own) if own else self._address()
        entry = None if made_here else self._entry(src)
        roll = self.draw.random()
        proto = Protocol.UDP if roll < 0.42 else Protocol.TCP if roll < 0.86 else _ICMP[self.family].proto
        ttl = self.draw.choice((64, 64, 64, 64, 64, 64, 64, 255, 2, 1))
        # The answer to a packet with a wrong checksum quotes it, and says nothing of its own.
        bad_checksum = ttl > 1 and self.draw.random() < 0.03
        mark = self._mark() if made_here and self.draw.random() < 0.3 else 0
        dst = self._address()
        while dst == 0 or (made_here and (dst in self.constants.loud or src in self.constants.loud)):
            dst, src = self._address(), self._address()
        packet = Packet(
            family=self.family, src=src, dst=dst, proto=proto, ttl=ttl, mark=mark,
            bad_checksum=bad_checksum,
        )  # fmt: skip
        packet = self._transport(packet)
        if self.constants.targets and self.draw.random() < 0.5:
            packet = self._aimed(packet, self.draw.choice(self.constants.targets))
        return Send(packet=packet, entry=entry)

    def _aimed(self, packet: Packet, target: _Target) -> Packet:
        """The packet, changed so that it meets a rule; each part is left out now and then."""
        if target.proto in (Protocol.TCP, Protocol.UDP) and packet.proto != target.proto:
            ports = (packet.sport, packet.dport) if packet.has_ports else (self.sport, self._port())
            packet = Packet(
                family=packet.family, src=packet.src, dst=packet.dst, proto=target.proto,
                ttl=packet.ttl, mark=packet.mark, bad_checksum=packet.bad_checksum,
                sport=ports[0], dport=ports[1],
            )  # fmt: skip
        wanted = {"dst": target.dst, "src": target.src}
        if packet.has_ports:
            wanted |= {"sport": target.sport, "dport": target.dport}
        changes = {k: v for k, v in wanted.items() if v is not None and self.draw.random() < 0.9}
        return packet.changed(**changes)

    def _transport(self, packet: Packet) -> Packet:
        sport = self.sport
        roll = self.draw.random()
        if roll < 0.06:
            sport = self.draw.randint(1, 1023)
        elif roll < 0.10:
            sport = self._port()
        match packet.proto:
            case Protocol.ICMP | Protocol.ICMPV6:
                return self._icmp(packet, sport)
            case Protocol.TCP:
                odd = self.draw.random() < 0.15
                flags = self.draw.choice(_STRANGE_FLAGS) if odd else TcpFlag.SYN
                ack = self.draw.getrandbits(31) if flags & TcpFlag.ACK else 0
                return packet.changed(sport=sport, dport=self._port(), flags=flags, ack=ack)
            case _:
                return packet.changed(sport=sport, dport=self._port())

    def _icmp(self, packet: Packet, ident: int) -> Packet:
        messages = _ICMP[self.family]
        roll = self.draw.random()
        if roll < 0.7:
            kind = self.draw.choice(messages.queries)
            return packet.changed(icmp_type=kind, icmp_code=0, icmp_id=ident)
        if roll < 0.8:
            return packet.changed(icmp_type=self.draw.choice(messages.others), icmp_code=0)
        quoted = Packet(
            family=self.family, src=packet.dst, dst=self._address(), proto=Protocol.UDP,
            sport=self._port(), dport=ident, payload=b"quoted",
        )  # fmt: skip
        return packet.changed(
            icmp_type=self.draw.choice(messages.quoting),
            icmp_code=0,
            quoted=quoted,
        )

    def _entry(self, src: int) -> str | None:
        if self.draw.random() < 0.7:
            try:
                found = entry_of(self.node, self.family, src)
            except ValueError:
                found = None
            if found is not None:
                return found
        return self.draw.choice(self.constants.interfaces)

    def _address(self) -> int:
        roll = self.draw.random()
        if roll < 0.80:
            return self.draw.choice(self.constants.addresses)
        if roll < 0.90:
            return self.draw.choice(self.constants.own)
        if roll < 0.97:
            return self.draw.choice(_ODD_ADDRESSES[self.family])
        if self.family is Family.IP6:
            return 0x2 << 124 | self.draw.getrandbits(124)  # global unicast, or nearly
        return self.draw.getrandbits(32)

    def _port(self) -> int:
        if self.constants.ports and self.draw.random() < 0.85:
            return self.draw.choice(self.constants.ports)
        return self.draw.randint(1, 65535)

    def _mark(self) -> int:
        if self.constants.marks and self.draw.random() < 0.8:
            return self.draw.choice(self.constants.marks)
        return self.draw.getrandbits(32)


def _constants(ruleset: Ruleset, node: Node) -> _Constants:
    addresses: set[int] = set()
    ports: set[int] = set()
    marks: set[int] = set()
    targets: dict[_Target, None] = {}
    family = ruleset.family
    highest = (1 << family.bits) - 1
    for table in ruleset.tables:
        for chain in table.chains:
            for rule in chain.rules:
                if (target := _target(rule.tests)) is not None:
                    targets[target] = None
                for test in _field_tests(rule.tests):
                    values = [v for v in test.values if isinstance(v, Interval)]
                    if test.field in _ADDRESS_FIELDS:
                        addresses.update(_around(values, highest))
                    elif test.field in _PORT_FIELDS:
                        ports.update(_around(values, 0xFFFF))
                    elif test.field is Field.MARK:
                        marks.update(v.low for v in values)
                for action in rule.actions:
                    if isinstance(action, Dnat | Snat) and action.addresses is not None:
                        addresses.update(_around([action.addresses], highest))
                    if isinstance(action, Dnat | Snat | Redirect | Masquerade) and action.ports.interval:
                        ports.update(_around([action.ports.interval], 0xFFFF))
    own: set[int] = {_LOOPBACK[family]}
    # What the node sends to these it also hears itself: two outcomes of one packet.
    loud: set[int] = {a for a in _ODD_ADDRESSES[family] if a == 0 or a >= _MULTICAST[family]}
    for interface in node.interfaces:
        for a in interface.addresses:
            if a.family is family:
                own.add(a.value)
                broadcast = family is Family.IP and a.prefix_length < 31
                loud.update({a.network.high} if broadcast else ())
                addresses.update((a.value, a.network.low, a.network.high))
                addresses.update(x for x in (a.value - 1, a.value + 1, a.value + 7) if x in a.network)
    for route in node.routes:
        if route.family is family:
            addresses.update(x for x in (route.dst.low, route.dst.low + 9, route.via) if x)
    return _Constants(
        tuple(targets),
        tuple(sorted(addresses)),
        tuple(sorted(ports)),
        tuple(sorted(marks)),
        tuple(sorted(own)),
        frozenset(loud),
        tuple(i.name for i in node.interfaces),
    )


def _target(tests: Sequence[Test]) -> _Target | None:
    """What a rule asks of addresses and ports with ``==``, or None when it is less than two things."""
    asked: dict[Field, int] = {}
    for test in tests:
        if isinstance(test, FieldTest) and not test.negated and test.mask is None:
            value = test.values[0]
            if isinstance(value, Interval):
                asked[test.field] = value.low + (1 if value.size > 2 else 0)
    ends = (Field.SADDR, Field.DADDR, Field.L4PROTO, Field.SPORT, Field.DPORT)
    found = _Target(*(asked.get(f) for f in ends))
    return found if sum(f in asked for f in ends) > 1 else None


def _field_tests(tests: Sequence[Test]) -> Iterator[FieldTest]:
    for test in tests:
        if isinstance(test, FieldTest):
            yield test
        elif isinstance(test, AnyOf):
            yield from test.tests


def _around(intervals: Iterable[Interval], highest: int) -> Iterator[int]:
    """Both ends of each interval, and the values just outside."""
    for i in intervals:
        yield from (v for v in {i.low, i.high, i.low - 1, i.high + 1} if 0 < v < highest)
