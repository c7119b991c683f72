"""Flows that should bring a packet with given wants to a hook, likeliest first.

A candidate is a guess: the simulator says afterwards where its packets really went. The same
wants, seed and history give the same candidates.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from backends.flow import Again, IcmpError, Reply, Send, Step
from backends.packet import IcmpType, Packet
from harness.corpus.generate.goals import Sighting
from harness.corpus.generate.places import Places
from harness.corpus.generate.wants import Wants
from translate.ir import (
    PORT_PROTOCOLS,
    AddressType,
    ConnectionState,
    ConnectionStatus,
    Family,
    Field,
    FieldTest,
    Hook,
    Interval,
    Protocol,
    TcpFlag,
)

__all__ = ["Candidates", "Steps", "host_unreachable"]

Steps = tuple[Step, ...]

_T = TypeVar("_T")

_FIRST_PORT: Final = 32768
_FLAGS: Final = (
    TcpFlag.SYN,
    TcpFlag.ACK,
    TcpFlag.RST,
    TcpFlag.FIN | TcpFlag.ACK,
    TcpFlag.SYN | TcpFlag.ACK,
    *(TcpFlag(n) for n in range(64)),
)
_FAVOURITES: Final = (80, 53, 443, 8080, 9, 33434)
_ERRORS: Final = {Family.IP: (3, 11, 12), Family.IP6: (1, 2, 3, 4)}  # those that quote a packet
_AGAINST_WINDOW: Final = TcpFlag.SYN | TcpFlag.FIN  # tcp_error: no such segment is valid


@dataclass(slots=True)
class Candidates:
    """Makes candidates for one ruleset on one node; each gets source ports of its own."""

    places: Places
    draw: random.Random
    family: Family
    constants: dict[Field, tuple[int, ...]]
    _made: int = 0

    def of(self, wants: Wants, hook: Hook, around: Sequence[Sighting], *, twice: bool) -> Iterator[Steps]:
        """Yield candidates without end being a promise: some wants allow none.

        ``around`` are sightings at the hook, of flows whose packets rules have changed before.
        ``twice`` asks for a second connection of the same client (``-m recent``).
        """
        states = [s for s in ConnectionState if wants.allows(Field.CT_STATE, int(s))]
        firsts = self._firsts(wants, hook, around)
        answers = self._firsts(wants.swapped(), _answered(hook), ())
        if Field.CT_DIRECTION in wants.plain and not wants.allows(Field.CT_DIRECTION, 0):
            states = [s for s in states if s is ConnectionState.ESTABLISHED]
            firsts = iter(())
        error = self._error(wants)
        free = wants.without(Field.L4PROTO, Field.ICMP_TYPE, Field.ICMP_CODE).swapped()
        abouts = () if error is None else self._firsts(free, _answered(hook), ())
        for first, answer, about in itertools.zip_longest(firsts, answers, abouts):
            if ConnectionState.NEW in states and first is not None:
                yield self._shape(first, twice=twice)
            if first is not None and (ConnectionState.UNTRACKED in states):
                yield (first,)
            if ConnectionState.ESTABLISHED in states:
                if first is not None:
                    yield (first, Reply(), Again())
                if answer is not None:
                    yield (answer, Reply())
            if ConnectionState.RELATED in states and answer is not None:
                yield (answer, host_unreachable(self.family))
            if ConnectionState.RELATED in states and error is not None and about is not None:
                yield (about, error)
            if ConnectionState.INVALID in states and first is not None:
                yield from self._invalid(first)

    def _shape(self, first: Send, *, twice: bool) -> Steps:
        if not twice:
            return (first,)
        packet = first.packet
        if isinstance(packet.sport, int):
            packet = packet.changed(sport=packet.sport + 1)
        elif isinstance(packet.icmp_id, int):
            packet = packet.changed(icmp_id=packet.icmp_id + 1)
        return (first, Send(packet=packet, entry=first.entry))

    def _error(self, wants: Wants) -> IcmpError | None:
        """The ICMP error that is asked for by its type, if one is."""
        if not wants.asks(Field.ICMP_TYPE):
            return None
        kinds = _ERRORS[self.family]
        kind = next((k for k in kinds if wants.allows(Field.ICMP_TYPE, k)), None)
        code = next((c for c in range(256) if wants.allows(Field.ICMP_CODE, c)), None)
        return None if kind is None or code is None else IcmpError(type=kind, code=code)

    def _invalid(self, first: Send) -> Iterator[Steps]:
        packet = first.packet
        if first.entry is not None:
            yield (Send(packet=packet.changed(bad_checksum=True), entry=first.entry),)
        if packet.proto == Protocol.TCP:
            yield (Send(packet=packet.changed(flags=_AGAINST_WINDOW), entry=first.entry),)
        if packet.is_icmp and self.family is Family.IP:
            packet = packet.changed(icmp_type=IcmpType.ECHO_REPLY)
            yield (Send(packet=packet, entry=first.entry),)

    # One packet

    def _firsts(self, wants: Wants, hook: Hook, around: Sequence[Sighting]) -> Iterator[Send]:
        direct = self._direct(wants, hook)
        changed = self._changed(wants, around)
        for one, other in itertools.zip_longest(direct, changed):
            yield from (s for s in (one, other) if s is not None)

    def _direct(self, wants: Wants, hook: Hook) -> Iterator[Send]:
        """Packets that no rule changes before they reach the hook."""
        protos = self._protocols(wants)
        dsts = self._destinations(wants, hook)
        sources = self._sources(wants, hook)
        if not (protos and dsts and sources):
            return
        dports: list[int | None] = [*self._ports(wants, Field.DPORT)] or [None]
        tried = set()
        for n in itertools.count():
            if n >= 64:
                return
            pick = (
                _pick(self.draw, protos, n),
                _pick(self.draw, sources, n),
                _pick(self.draw, dsts, n),
                _pick(self.draw, dports, n),
            )
            if pick in tried:
                continue
            tried.add(pick)
            proto, (src, entry), dst, dport = pick
            if src == dst and entry is not None:
                continue
            packet = self._packet(wants, proto, src, dst, dport, made_here=entry is None)
            if packet is not None:
                yield Send(packet=packet, entry=entry)

    def _changed(self, wants: Wants, around: Sequence[Sighting]) -> Iterator[Send]:
        """Packets that rules change before the hook, as they changed those that were seen there."""
        fit = [s for s in around if s.first and self._fits(wants, s)]
        for sighting in fit[:16]:
            sent = sighting.sent
            packet = self._fresh(sent.packet)
            if sighting.packet.src == packet.src and not wants.allows(Field.SADDR, packet.src):
                made_here = sent.entry is None
                hook = Hook.OUTPUT if made_here else Hook.PREROUTING
                for src, entry in self._sources(wants, hook)[:4]:
                    yield Send(packet=packet.changed(src=src), entry=entry)
            else:
                yield Send(packet=packet, entry=sent.entry)

    def _fits(self, wants: Wants, seen: Sighting) -> bool:
        before, after = seen.sent.packet, seen.packet
        changed = (before.dst, before.dport, before.mark) != (after.dst, after.dport, seen.mark)
        status = ConnectionStatus.DNAT if (before.dst, before.dport) != (after.dst, after.dport) else 0
        if not changed or not wants.allows(Field.MARK, seen.mark):
            return False
        checks: list[tuple[Field, object]] = [
            (Field.L4PROTO, after.proto),
            (Field.DADDR, after.dst),
            (Field.DPORT, after.dport),
            (Field.CT_STATUS, int(status)),
            (Field.CT_ORIGINAL_DADDR, before.dst),
            (Field.CT_ORIGINAL_DPORT, before.dport),
            (Field.CT_REPLY_SADDR, after.dst),
            (Field.FIB_DADDR_TYPE, int(self.places.kind(after.dst))),
        ]
        for field, value in checks:
            if wants.asks(field) and not (isinstance(value, int) and wants.allows(field, value)):
                return False
        return wants.allows_name(Field.OIF, seen.oif)

    def _fresh(self, packet: Packet) -> Packet:
        if packet.has_ports and isinstance(packet.sport, int) and packet.sport >= 1024:
            return packet.changed(sport=self._port())
        return packet

    def _port(self) -> int:
        self._made += 1
        return _FIRST_PORT + (self._made * 7) % (60000 - _FIRST_PORT)

    def _packet(
        self, wants: Wants, proto: int, src: int, dst: int, dport: int | None, *, made_here: bool
    ) -> Packet | None:
        packet = Packet(family=self.family, src=src, dst=dst, proto=proto)
        if made_here and wants.asks(Field.MARK):
            mark = next((m for m in self._marks(wants) if wants.allows(Field.MARK, m)), 0)
            packet = packet.changed(mark=mark)
        if proto in PORT_PROTOCOLS:
            sport = self._port()
            if not wants.allows(Field.SPORT, sport):
                sports = self._ports(wants, Field.SPORT)
                if not sports:
                    return None
                sport = sports[0]
            packet = packet.changed(sport=sport, dport=dport or _FAVOURITES[0])
        elif wants.asks(Field.DPORT) or wants.asks(Field.SPORT):
            return None
        if proto == Protocol.TCP:
            flags = next((f for f in _FLAGS if wants.allows(Field.TCP_FLAGS, int(f))), None)
            return None if flags is None else packet.changed(flags=flags)
        if wants.asks(Field.TCP_FLAGS):
            return None
        if packet.is_icmp:
            return self._icmp(wants, packet)
        return None if wants.asks(Field.ICMP_TYPE) else packet

    def _icmp(self, wants: Wants, packet: Packet) -> Packet | None:
        request = IcmpType.ECHO_REQUEST if self.family is Family.IP else 128
        kinds = [request, *_ends(wants.values(Field.ICMP_TYPE))]
        kind = next((k for k in kinds if wants.allows(Field.ICMP_TYPE, k)), None)
        code = next((c for c in range(256) if wants.allows(Field.ICMP_CODE, c)), None)
        if kind is None or code is None:
            return None
        return packet.changed(icmp_type=kind, icmp_code=code, icmp_id=self._port())

    # Values of one field

    def _marks(self, wants: Wants) -> Iterator[int]:
        yield 0
        for test in wants.masked:
            if test.field is Field.MARK:
                yield from (v.low for v in test.values if isinstance(v, Interval))
                yield from (0xFFFFFFFF & ~v.low for v in test.values if isinstance(v, Interval))
        every = [
            v.low for t in wants.masked if t.field is Field.MARK and not t.negated for v in _intervals(t)
        ]
        yield _together(every)
        yield from _ends(wants.values(Field.MARK))
        yield from self.constants.get(Field.MARK, ())

    def _protocols(self, wants: Wants) -> list[int]:
        icmp = Protocol.ICMP if self.family is Family.IP else Protocol.ICMPV6
        others = [p for p in _ends(wants.values(Field.L4PROTO)) if 0 < p < 255]
        usual: tuple[int, ...] = (Protocol.TCP, Protocol.UDP, icmp, Protocol.SCTP, *others)
        if wants.asks(Field.ICMP_TYPE) or wants.asks(Field.ICMP_CODE):
            usual = (icmp,) * 4
        elif wants.asks(Field.TCP_FLAGS):
            usual = (Protocol.TCP,) * 4
        elif wants.asks(Field.DPORT) or wants.asks(Field.SPORT):
            usual = (Protocol.TCP, Protocol.UDP, Protocol.SCTP, Protocol.TCP)
        return [p for p in dict.fromkeys(map(int, usual)) if wants.allows(Field.L4PROTO, p)]

    def _ports(self, wants: Wants, field: Field) -> list[int]:
        values = wants.values(field)
        found = list(_ends(values))
        if values[0].low <= 1 and values[-1].high == 65535:
            # The wants are "not these": the values beside them come first, then what is usual.
            inner = {v for i in values for v in (i.low, i.high)} - {0, 1, 65535}
            found = [*sorted(inner), *_FAVOURITES, *self.constants.get(field, ())[:8]]
        return [p for p in dict.fromkeys(found) if 0 < p < 65536 and wants.allows(field, p)]

    def _destinations(self, wants: Wants, hook: Hook) -> list[int]:
        places = self.places
        own = (*places.own, places.loopback)
        far = (*places.outside[:3], *places.endpoints[:3], *places.inside[:3], *places.neighbours[:4])
        match hook:
            case Hook.INPUT:
                usual = own
            case Hook.FORWARD | Hook.POSTROUTING:
                usual = (*far, *(own if hook is Hook.POSTROUTING else ()))
            case _:
                usual = (*far, *own)
        found = self._addresses(wants, Field.DADDR, usual)
        if wants.asks(Field.FIB_DADDR_TYPE):
            found += self._of_kinds(wants)
        names = [d for d in found if self._reached(wants, hook, d)]
        return list(dict.fromkeys(names))

    def _reached(self, wants: Wants, hook: Hook, dst: int) -> bool:
        if dst == 0 or not wants.allows(Field.DADDR, dst):
            return False
        kind = self.places.kind(dst)
        if not wants.allows(Field.FIB_DADDR_TYPE, int(kind)):
            return False
        local = kind is not AddressType.UNICAST
        if (hook is Hook.INPUT and not local) or (hook is Hook.FORWARD and local):
            return False
        if hook in (Hook.FORWARD, Hook.POSTROUTING, Hook.OUTPUT):
            return wants.allows_name(Field.OIF, self.places.behind(dst) or "lo")
        return True

    def _of_kinds(self, wants: Wants) -> list[int]:
        places = self.places
        odd = sorted(places.loud)
        if self.family is Family.IP:
            odd += [0xFFFFFFFF, 0xE0000009]
        return [a for a in (*places.own, places.loopback, *odd) if wants.allows(Field.DADDR, a)]

    def _sources(self, wants: Wants, hook: Hook) -> list[tuple[int, str | None]]:
        """Sources with where they enter (None: made on the node)."""
        found: list[tuple[int, str | None]] = []
        if hook in (Hook.PREROUTING, Hook.INPUT, Hook.FORWARD, Hook.POSTROUTING):
            found += self._from_outside(wants, hook)
        if hook in (Hook.OUTPUT, Hook.POSTROUTING):
            found += self._from_here(wants)
        if hook is Hook.INPUT and wants.allows_name(Field.IIF, "lo"):
            found += self._from_here(wants)
        return found

    def _from_here(self, wants: Wants) -> list[tuple[int, str | None]]:
        # An address that is not the node's comes last: programs that are allowed to, send from it.
        usual = (*self.places.own, self.places.loopback, *self.places.inside[:2], *self.places.outside[:1])
        own = [a for a in self._addresses(wants, Field.SADDR, usual) if self._source_kind(wants, a)]
        local = [a for a in own if self.places.kind(a) is AddressType.LOCAL]
        return [(a, None) for a in local or [a for a in own if self.places.usable(a)]]

    def _from_outside(self, wants: Wants, hook: Hook) -> list[tuple[int, str | None]]:
        places = self.places
        usual = (*places.outside[:3], *places.inside[:3], *places.endpoints[:6], *places.neighbours[:4])
        found: list[tuple[int, str | None]] = []
        names = [i.name for i in places.node.interfaces]
        if hook is not Hook.POSTROUTING:
            names = [n for n in names if wants.allows_name(Field.IIF, n)]
        for address in self._addresses(wants, Field.SADDR, usual):
            if not self._source_kind(wants, address) or not places.usable(address):
                continue
            link = places.behind(address)
            if link in names:
                found.append((address, link))
            elif names and link is not None:
                found.append((address, names[0]))
        return found or [
            (a, n)
            for a in self._addresses(wants, Field.SADDR, places.own)
            for n in names[:1]
            if self._source_kind(wants, a) and places.usable(a)
        ]

    def _source_kind(self, wants: Wants, address: int) -> bool:
        return wants.allows(Field.SADDR, address) and wants.allows(
            Field.FIB_SADDR_TYPE, int(self.places.kind(address))
        )

    def _addresses(self, wants: Wants, field: Field, usual: Iterable[int]) -> list[int]:
        """Addresses that the wants allow: those beside what is excluded, usual ones, ends of what is left."""
        values = wants.values(field)
        last = (1 << self.family.bits) - 1
        ends = [a for i in values for a in (i.low, i.high, i.low + 1) if a in i and a > 1]
        beside = [a for a in ends if 0 < a < last] if field in wants.plain else []
        odd = [v.low for t in wants.masked if t.field is field for v in _intervals(t)]
        kept = [a for a in (*usual, *odd) if wants.allows(field, a)]
        wide = len(values) > 1 or values[0].low == 0 or values[-1].high == last
        # Where the wants are wide, the values just beside the hole show most; where they are narrow
        # (a prefix), an ordinary host in it does.
        ordered = [*beside[:4], *kept, *beside[4:]] if wide else [*kept, *beside]
        return [a for a in dict.fromkeys(ordered) if wants.allows(field, a)][:24]


def host_unreachable(family: Family) -> IcmpError:
    """Return what a router says about a host that does not answer (RFC 792, RFC 4443)."""
    if family is Family.IP:
        return IcmpError(type=IcmpType.DEST_UNREACHABLE, code=1)
    return IcmpError(type=1, code=3)


def _pick(draw: random.Random, values: Sequence[_T], n: int) -> _T:
    """The first choice at first, then earlier ones more often than later ones."""
    if n == 0:
        return values[0]
    return values[min(int(draw.random() * draw.random() * len(values)), len(values) - 1)]


def _ends(intervals: Iterable[Interval]) -> Iterator[int]:
    for i in intervals:
        yield from dict.fromkeys((i.low, i.high))


def _intervals(test: FieldTest) -> Iterator[Interval]:
    yield from (v for v in test.values if isinstance(v, Interval))


def _together(values: Iterable[int]) -> int:
    result = 0
    for value in values:
        result |= value
    return result


def _answered(hook: Hook) -> Hook:
    """The hook at which the first packet is where its answer is at ``hook``."""
    return {Hook.INPUT: Hook.OUTPUT, Hook.OUTPUT: Hook.INPUT}.get(hook, hook)
