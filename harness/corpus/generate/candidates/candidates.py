"""Flows that may bring a packet that satisfies given constraints to a hook, likeliest first.

A candidate is a guess: the simulator then determines the real path of its packets. The same constraints, seed
and history give the same candidates.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from backends.model.flow import Again, IcmpError, Reply, Send, Step
from backends.model.packet import IcmpType, Packet
from harness.corpus.formats.packets import icmp_has_identifier
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.candidates.constraints import Constraints
from harness.corpus.generate.candidates.counted import conversations
from harness.corpus.generate.candidates.headers import with_headers
from harness.corpus.generate.candidates.values import USUAL_PORTS, Values, ends
from harness.corpus.generate.goals import Sighting
from translate.dataclass import dataclass, replace
from translate.dataclass import field as attribute
from translate.ir import (
    PORT_PROTOCOLS,
    ConnectionState,
    ConnectionStatus,
    Family,
    Field,
    Hook,
    Protocol,
    TcpFlag,
)

__all__ = ["Candidates", "Steps", "host_unreachable", "was_changed"]

Steps = tuple[Step, ...]

_T = TypeVar("_T")

_FIRST_PORT: Final = 32768
_FLAGS: Final = (
    TcpFlag.SYN,
    TcpFlag.ACK,
    TcpFlag.RST,
    TcpFlag.FIN | TcpFlag.ACK,
    TcpFlag.SYN | TcpFlag.ACK,
    TcpFlag.SYN | TcpFlag.ECE | TcpFlag.CWR,
    TcpFlag.SYN | TcpFlag.ECE,
    TcpFlag.SYN | TcpFlag.CWR,
    *(TcpFlag(n) for n in range(256)),
)
_ERRORS: Final = {Family.IP: (3, 11, 12), Family.IP6: (1, 2, 3, 4)}  # errors, which quote a packet
_AGAINST_WINDOW: Final = TcpFlag.SYN | TcpFlag.FIN  # tcp_error: a segment with both is invalid


@dataclass(slots=True)
class Candidates:
    """A maker of candidates for one ruleset on one node; each candidate gets its own source ports."""

    places: Places
    draw: random.Random
    family: Family
    constants: dict[Field, tuple[int, ...]]
    _values: Values = attribute(init=False)
    _made: int = 0

    def __post_init__(self) -> None:
        self._values = Values(places=self.places, family=self.family, constants=self.constants)

    def of(
        self, constraints: Constraints, hook: Hook, around: Sequence[Sighting], *, times: int
    ) -> Iterator[Steps]:
        """Yield candidates; none if no packet can satisfy the constraints.

        ``around`` are sightings at the hook for which :func:`was_changed` holds. ``times`` is the number of
        successive connections of the same client (for ``-m recent`` and ``-m limit``).
        """
        states = [s for s in ConnectionState if constraints.allows(Field.CT_STATE, int(s))]
        firsts = self._firsts(constraints, hook, around)
        answers = self._firsts(constraints.swapped(), _answered(hook), ())
        if Field.CT_DIRECTION in constraints.plain and not constraints.allows(Field.CT_DIRECTION, 0):
            states = [s for s in states if s is ConnectionState.ESTABLISHED]
            firsts = iter(())
        error = self._error(constraints)
        free = constraints.without(Field.L4PROTO, Field.ICMP_TYPE, Field.ICMP_CODE).swapped()
        abouts = () if error is None else self._firsts(free, _answered(hook), ())
        for first, answer, about in itertools.zip_longest(firsts, answers, abouts):
            if ConnectionState.NEW in states and first is not None:
                yield _shape(first, times)
            if first is not None and (ConnectionState.UNTRACKED in states):
                yield (first,)
            for opening in (first, answer):
                if opening is not None:
                    yield from conversations(opening, constraints)
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

    def _error(self, constraints: Constraints) -> IcmpError | None:
        """Return an ICMP error that the constraints allow, if they restrict the ICMP type."""
        if not constraints.has(Field.ICMP_TYPE):
            return None
        kinds = _ERRORS[self.family]
        kind = next((k for k in kinds if constraints.allows(Field.ICMP_TYPE, k)), None)
        code = next((c for c in range(256) if constraints.allows(Field.ICMP_CODE, c)), None)
        return None if kind is None or code is None else IcmpError(type=kind, code=code)

    def _invalid(self, first: Send) -> Iterator[Steps]:
        packet = first.packet
        if first.entry is not None:
            yield (Send(packet=replace(packet, bad_checksum=True), entry=first.entry),)
        if packet.proto == Protocol.TCP:
            yield (Send(packet=replace(packet, flags=_AGAINST_WINDOW), entry=first.entry),)
        if packet.is_icmp and self.family is Family.IP:
            packet = replace(packet, icmp_type=IcmpType.ECHO_REPLY)
            yield (Send(packet=packet, entry=first.entry),)

    # One packet

    def _firsts(self, constraints: Constraints, hook: Hook, around: Sequence[Sighting]) -> Iterator[Send]:
        direct = self._direct(constraints, hook)
        changed = self._changed(constraints, around)
        for first, other in itertools.zip_longest(direct, changed):
            yield from (s for s in (first, other) if s is not None)

    def _direct(self, constraints: Constraints, hook: Hook) -> Iterator[Send]:
        """Yield packets that should reach the hook unchanged."""
        protos = self._values.protocols(constraints)
        dsts = self._values.destinations(constraints, hook)
        sources = self._values.sources(constraints, hook)
        if not (protos and dsts and sources):
            return
        dports: list[int | None] = [*self._values.ports(constraints, Field.DPORT)] or [None]
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
            packet = self._packet(constraints, proto, src, dst, dport, made_here=entry is None)
            if packet is not None:
                packet = with_headers(packet, constraints, hook, entry)
            if packet is not None:
                yield Send(packet=packet, entry=entry)

    def _changed(self, constraints: Constraints, around: Sequence[Sighting]) -> Iterator[Send]:
        """Yield variants of packets that rules changed before they reached the hook."""
        fields = constraints.fields
        fit = itertools.islice((s for s in around if self._fits(constraints, fields, s)), 16)
        for sighting in fit:
            sent = sighting.sent
            packet = self._fresh(sent.packet)
            if sighting.packet.src == packet.src and not constraints.allows(Field.SADDR, packet.src):
                made_here = sent.entry is None
                hook = Hook.OUTPUT if made_here else Hook.PREROUTING
                for src, entry in self._values.sources(constraints, hook)[:4]:
                    yield Send(packet=replace(packet, src=src), entry=entry)
            else:
                yield Send(packet=packet, entry=sent.entry)

    def _fits(self, constraints: Constraints, fields: frozenset[Field], sighting: Sighting) -> bool:
        before, after = sighting.sent.packet, sighting.packet
        if Field.DADDR in fields and not constraints.allows(Field.DADDR, after.dst):
            return False
        if not constraints.allows(Field.MARK, sighting.mark):
            return False
        checks: tuple[tuple[Field, object], ...] = (
            (Field.L4PROTO, after.proto),
            (Field.DPORT, after.dport),
            (Field.CT_STATUS, int(ConnectionStatus.DNAT if _moved(sighting) else 0)),
            (Field.CT_ORIGINAL_DADDR, before.dst),
            (Field.CT_ORIGINAL_DPORT, before.dport),
            (Field.CT_REPLY_SADDR, after.dst),
        )
        for field, value in checks:
            if field in fields and not (isinstance(value, int) and constraints.allows(field, value)):
                return False
        kind = Field.FIB_DADDR_TYPE
        if kind in fields and not constraints.allows(kind, int(self.places.kind(after.dst))):
            return False
        group = self.places.node.group_of(sighting.oif)
        return constraints.allows_interface(sighting.oif, group, entry=False)

    def _fresh(self, packet: Packet) -> Packet:
        if packet.has_ports and isinstance(packet.sport, int) and packet.sport >= 1024:
            return replace(packet, sport=self._port())
        return packet

    def _port(self) -> int:
        self._made += 1
        return _FIRST_PORT + (self._made * 7) % (60000 - _FIRST_PORT)

    def _owner(self, constraints: Constraints, field: Field) -> int:
        return next((n for n in (0, *ends(constraints.values(field))) if constraints.allows(field, n)), 0)

    def _packet(
        self, constraints: Constraints, proto: int, src: int, dst: int, dport: int | None, *, made_here: bool
    ) -> Packet | None:
        packet = Packet(family=self.family, src=src, dst=dst, proto=proto)
        if made_here and constraints.has(Field.MARK):
            mark = next((m for m in self._values.marks(constraints) if constraints.allows(Field.MARK, m)), 0)
            packet = replace(packet, mark=mark)
        if made_here:
            uid, gid = (self._owner(constraints, field) for field in (Field.SOCKET_UID, Field.SOCKET_GID))
            packet = replace(packet, uid=uid, gid=gid)
        if proto in PORT_PROTOCOLS:
            sport = self._port()
            if not constraints.allows(Field.SPORT, sport):
                sports = self._values.ports(constraints, Field.SPORT)
                if not sports:
                    return None
                sport = sports[0]
            packet = replace(packet, sport=sport, dport=dport or USUAL_PORTS[0])
        elif constraints.has(Field.DPORT) or constraints.has(Field.SPORT):
            return None
        if proto == Protocol.TCP:
            flags = next((f for f in _FLAGS if constraints.allows(Field.TCP_FLAGS, int(f))), None)
            return None if flags is None else replace(packet, flags=flags)
        if constraints.has(Field.TCP_FLAGS):
            return None
        if packet.is_icmp:
            return self._icmp(constraints, packet)
        return None if constraints.has(Field.ICMP_TYPE) else packet

    def _icmp(self, constraints: Constraints, packet: Packet) -> Packet | None:
        request = IcmpType.ECHO_REQUEST if self.family is Family.IP else 128
        kinds = [request, *ends(constraints.values(Field.ICMP_TYPE))]
        kind = next((k for k in kinds if constraints.allows(Field.ICMP_TYPE, k)), None)
        code = next((c for c in range(256) if constraints.allows(Field.ICMP_CODE, c)), None)
        if kind is None or code is None:
            return None
        identifier = self._port()
        asks = icmp_has_identifier(self.family, kind)
        return replace(packet, icmp_type=kind, icmp_code=code, icmp_id=identifier if asks else None)


def host_unreachable(family: Family) -> IcmpError:
    """Return the ICMP error of a router for a host that does not answer (RFC 792, RFC 4443)."""
    if family is Family.IP:
        return IcmpError(type=IcmpType.DEST_UNREACHABLE, code=1)
    return IcmpError(type=1, code=3)


def was_changed(sighting: Sighting) -> bool:
    """Return whether rules changed the destination or the mark of a first packet before the sighting."""
    return sighting.first and (_moved(sighting) or sighting.sent.packet.mark != sighting.mark)


def _moved(sighting: Sighting) -> bool:
    before, after = sighting.sent.packet, sighting.packet
    return (before.dst, before.dport) != (after.dst, after.dport)


def _pick(draw: random.Random, values: Sequence[_T], n: int) -> _T:
    """Return the first value when ``n`` is 0, otherwise a random one, with earlier ones more likely."""
    if n == 0:
        return values[0]
    return values[min(int(draw.random() * draw.random() * len(values)), len(values) - 1)]


def _shape(first: Send, times: int) -> Steps:
    return (first, *(Send(packet=_from_port(first.packet, n), entry=first.entry) for n in range(1, times)))


def _from_port(packet: Packet, distance: int) -> Packet:
    if isinstance(packet.sport, int):
        return replace(packet, sport=packet.sport + distance)
    if isinstance(packet.icmp_id, int):
        return replace(packet, icmp_id=packet.icmp_id + distance)
    return packet


def _answered(hook: Hook) -> Hook:
    """Return the hook of the first packet when its answer passes ``hook``."""
    return {Hook.INPUT: Hook.OUTPUT, Hook.OUTPUT: Hook.INPUT}.get(hook, hook)
