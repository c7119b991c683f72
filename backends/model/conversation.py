"""The packets of a flow's steps, built from the packets that came out before.

Every backend uses this module, so that all of them send the same packets. It keeps TCP sequence numbers,
because a segment outside the window is INVALID for conntrack (``tcp_in_window``).
"""

from __future__ import annotations

import zlib
from typing import Final

from backends.model.flow import Again, Flow, IcmpError, Reply, Send
from backends.model.leading import has_bare_header, leading, with_mobility_checksum
from backends.model.packet import FRAGMENT_SIZE, Icmp6Type, IcmpType, Packet
from translate.dataclass import dataclass, field, replace
from translate.ir import Family, Protocol, TcpFlag

__all__ = ["Arrival", "Conversation", "Emission"]


@dataclass(frozen=True, slots=True)
class Emission:
    """A packet to send: into interface ``entry``, or from the node itself if that is None."""

    packet: Packet
    entry: str | None


@dataclass(frozen=True, slots=True)
class Arrival:
    """A packet as it came out: on interface ``out``, or delivered to the node if that is None."""

    packet: Packet
    out: str | None


@dataclass(slots=True)
class _Connection:
    """Both ends of the connection that the last Send began."""

    sent: Emission
    client_next: int
    server_next: int
    arrived: Arrival | None = None
    server_spoke: bool = False


@dataclass(slots=True)
class Conversation:
    """Turns the steps of one flow into packets.

    Call :meth:`emit` for each step in order, then :meth:`arrived` if the packet came out (left the
    node or was delivered). Deterministic: the same flow and arrivals give the same packets.
    """

    flow: Flow
    _connection: _Connection | None = None
    _last: Arrival | None = None
    _count: int = 0
    _original: bool = field(default=True)
    _made: dict[int, tuple[Emission, int, int]] = field(default_factory=dict)
    _clock: float | None = None
    """The time on the node's clock, if a packet has set it."""

    def afresh(self) -> Conversation:
        """Return a new conversation of the same flow, at its beginning.

        It shares the packets of the Sends, which do not depend on arrivals.
        """
        return Conversation(self.flow, _made=self._made)

    def emit(self, step: Send | Reply | Again | IcmpError) -> Emission | None:
        """Return the packet that this step sends, or None if there is nothing to answer."""
        self._count += 1
        if isinstance(step, Send) and step.packet.time is not None:
            self._clock = step.packet.time
        emission = self._emit(step)
        if self._clock is None or emission is None:
            return emission
        return Emission(replace(emission.packet, time=int(self._clock)), emission.entry)

    def waited(self, seconds: float) -> None:
        """Advance the node's clock by a pause."""
        if self._clock is not None:
            self._clock += seconds

    def _emit(self, step: Send | Reply | Again | IcmpError) -> Emission | None:
        match step:
            case Send():
                return self._send(step)
            case Reply():
                return self._reply(step)
            case Again():
                return self._again(step)
            case IcmpError():
                return self._error(step)

    def arrived(self, arrival: Arrival) -> None:
        """Record the form in which the last emitted packet came out."""
        self._last = arrival
        if self._original and self._connection is not None:
            self._connection.arrived = arrival

    def tag(self) -> bytes:
        """Return eight bytes that are unique in this flow."""
        return (zlib.crc32(self.flow.id.encode()) << 32 | self._count).to_bytes(8, "big")

    def _start(self, *, server: bool) -> int:
        name = f"{self.flow.id}/{self._count}/{'s' if server else 'c'}"
        return zlib.crc32(name.encode()) & 0x7FFFFFFF

    def _payload(self, packet: Packet) -> bytes:
        # A SYN, FIN or RST may carry data, but data would move the sequence numbers.
        if packet.truncated:
            return packet.payload
        if packet.is_later_fragment:
            return _filled(packet, packet.payload or self.tag())
        bare = has_bare_header(packet)
        if packet.proto == Protocol.TCP or (packet.payload and not bare):
            payload = _filled(packet, packet.payload)
        else:
            payload = self._filler(packet)
        return with_mobility_checksum(packet, payload)

    def _filler(self, packet: Packet) -> bytes:
        """Return the payload: the tag, after the header of GRE or IPsec where the kernel reads one."""
        return _filled(packet, leading(packet) + self.tag())

    def _send(self, step: Send) -> Emission:
        emission_and_start = self._made.get(self._count)
        if emission_and_start is None:
            packet = step.packet
            fragment = packet.fragment
            if fragment is not None and fragment.id is None:
                ident = zlib.crc32(self.tag()) & 0xFFFF
                packet = replace(packet, fragment=fragment._replace(id=ident))
            start = there = packet.seq
            if packet.proto == Protocol.TCP:
                start, there = packet.seq or self._start(server=False), self._start(server=True)
            packet = replace(packet, seq=start, payload=self._payload(packet))
            emission_and_start = Emission(packet, step.entry), _advance(start, packet), there
            self._made[self._count] = emission_and_start
        self._connection, self._original, self._last = _Connection(*emission_and_start), True, None
        return emission_and_start[0]

    def _again(self, step: Again) -> Emission | None:
        talk = self._connection
        if talk is None:
            return None
        packet = talk.sent.packet
        if packet.truncated:
            pass
        elif packet.is_later_fragment:
            packet = replace(packet, payload=_filled(packet, self.tag()))
        elif packet.proto == Protocol.TCP:
            flags = TcpFlag.ACK if step.flags is None else step.flags
            ack = talk.server_next if flags.has(TcpFlag.ACK) else 0
            packet = replace(packet, flags=flags, seq=talk.client_next, ack=ack)
            talk.client_next = _advance(talk.client_next, packet)
        else:
            packet = replace(packet, payload=self._filler(packet))
        self._original, self._last = True, None
        return Emission(packet, talk.sent.entry)

    def _reply(self, step: Reply) -> Emission | None:
        talk = self._connection
        if talk is None or talk.arrived is None:
            return None
        request = talk.arrived.packet
        if request.fragment is not None or request.truncated:
            return None
        packet = replace(
            request,
            src=request.dst,
            dst=request.src,
            sport=request.dport,
            dport=request.sport,
            ttl=64,
            mark=0,
            uid=0,
            gid=0,
            bad_checksum=False,
            tos=0,
            filled_to=0,
            mss=request.mss if request.flags.has(TcpFlag.SYN) else None,
            smac=None,
            dmac=None,
            routing=None,
            hop_options=None,
            destination_options=None,
        )
        if packet.proto == Protocol.TCP:
            first = request.flags.has(TcpFlag.SYN) and not talk.server_spoke
            default = _SYN_ACK if first else TcpFlag.ACK
            flags = default if step.flags is None else step.flags
            packet = replace(
                packet,
                flags=flags,
                seq=talk.server_next,
                ack=talk.client_next if flags.has(TcpFlag.ACK) else 0,
                payload=b"",
            )
            talk.server_next = _advance(talk.server_next, packet)
            talk.server_spoke = True
        elif packet.is_icmp:
            echo = Icmp6Type if request.proto == Protocol.ICMPV6 else IcmpType
            if request.icmp_type != echo.ECHO_REQUEST:
                return None
            packet = replace(packet, icmp_type=echo.ECHO_REPLY, payload=self.tag())
        else:
            packet = replace(packet, payload=self._filler(packet))
        self._original, self._last = False, None
        return Emission(packet, talk.arrived.out)

    def _error(self, step: IcmpError) -> Emission | None:
        last = self._last
        if last is None:
            return None
        offending = last.packet
        error = Packet(
            family=offending.family,
            src=offending.dst if step.source is None else step.source,
            dst=offending.src,
            proto=Protocol.ICMP if offending.family is Family.IP else Protocol.ICMPV6,
            icmp_type=step.type,
            icmp_code=step.code,
            quoted=replace(
                offending,
                mark=0,
                uid=0,
                gid=0,
                bad_checksum=False,
                filled_to=0,
                smac=None,
                dmac=None,
                routing=None,
                hop_options=None,
                destination_options=None,
            ),
        )
        self._original, self._last = False, None
        return Emission(error, last.out)


def _filled(packet: Packet, payload: bytes) -> bytes:
    """Return the payload, followed by zeros up to the packet's required length.

    A fragment with others after it ends at a multiple of 8 bytes (RFC 791, 3.2).
    """
    if packet.filled_to:
        payload += bytes(max(0, packet.filled_to - replace(packet, payload=payload).length))
    if packet.fragment is not None and packet.fragment.more:
        headers = _HEADERS[packet.family] + (0 if packet.routing is None else packet.routing.size)
        headers += 0 if packet.hop_options is None else 8 * (packet.hop_options + 1)
        payload += bytes((headers - replace(packet, payload=payload).length) % FRAGMENT_SIZE)
    return payload


_SYN_ACK: Final = TcpFlag.SYN | TcpFlag.ACK
_HEADERS = {Family.IP: 20, Family.IP6: 40}
"""The length of each IP header."""


def _advance(seq: int, packet: Packet) -> int:
    if packet.proto != Protocol.TCP:
        return seq
    phantom = packet.flags.has(TcpFlag.SYN) + packet.flags.has(TcpFlag.FIN)
    return (seq + len(packet.payload) + phantom) & 0xFFFFFFFF
