"""The connection table, and the assignment of packets to connections and states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from backends.model.packet import GRE, Packet, Port, Tuple
from backends.model.timeouts import Timeouts
from backends.simulator.chance.ports import PickedPort, Ports
from backends.simulator.conntrack.connection import (
    NO_ZONE,
    ORIGINAL,
    REPLY,
    ConntrackEntry,
    Zone,
)
from backends.simulator.conntrack.skb import Skb
from backends.simulator.conntrack.tcp import TcpTrack, TcpVerdict
from backends.simulator.conntrack.tcp_states import TcpState, valid_flags
from backends.simulator.conntrack.tuples import (
    ICMP6_REDIRECT,
    ICMP6_REQUESTS,
    ICMP6_UNTRACKED,
    ICMP_ERRORS,
    ICMP_REQUESTS,
    NR_ICMP_TYPES,
    invert,
    tuple_of,
)
from translate.dataclass import dataclass, field
from translate.ir import ConnectionState, ConnectionStatus, Protocol

__all__ = ["Conntrack", "TrackSettings"]

_SEEN_REPLY = int(ConnectionStatus.SEEN_REPLY)
_ASSURED = int(ConnectionStatus.ASSURED)
_CONFIRMED = int(ConnectionStatus.CONFIRMED)
_ZERO = (0,)
_SHRINKS_FROM: Final = 120
"""The shortest timeout that a connection without trust loses (``nf_tcp_handle_invalid``), in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackSettings:
    """The sysctls of ``net.netfilter.nf_conntrack_*`` that affect states and timeouts."""

    checksum: bool
    tcp_loose: bool
    tcp_be_liberal: bool
    tcp_ignore_invalid_rst: bool
    timeouts: Timeouts


_Key = Tuple | tuple[Tuple, int]
"""A tuple in zone 0, or a tuple with another zone."""


def _key(t: Tuple, zone: int) -> _Key:
    return (t, zone) if zone else t


@dataclass(slots=True)
class Conntrack:
    """The connection table of one run, and the trackers of the protocols."""

    settings: TrackSettings
    ports: Ports
    now: float = 0.0
    _table: dict[_Key, tuple[ConntrackEntry, int]] = field(default_factory=dict)
    _picked: list[tuple[Tuple, ConntrackEntry, int]] = field(default_factory=list)
    by_source: list[ConntrackEntry] = field(default_factory=list)

    def begin(self) -> None:
        """Forget all connections, for another run."""
        self.now = 0.0
        self._table.clear()
        self._picked.clear()
        self.by_source.clear()

    def is_empty(self) -> bool:
        """Return whether the table has no connection."""
        return not (self._table or self.by_source)

    # The table

    def find(self, t: Tuple, zone: Zone = NO_ZONE) -> tuple[ConntrackEntry, int] | None:
        """Return the confirmed entry with this tuple and its direction (``nf_conntrack_find_get``).

        The entry's zone for the tuple's direction must be that of the packet (``nf_ct_key_equal``); the zone
        of the original direction is tried first (``resolve_normal_ct``).
        """
        if not self._table:
            return None
        for number in dict.fromkeys((zone.of(ORIGINAL), zone.of(REPLY))) if zone.number else _ZERO:
            entry = self._entry(t, zone, number)
            if entry is not None:
                return entry
        return None

    def _entry(self, t: Tuple, zone: Zone, number: int) -> tuple[ConntrackEntry, int] | None:
        """Return the entry with this tuple that is hashed with zone ``number``."""
        known = self._table.get(_key(t, number))
        if known is not None and known[0].expires <= self.now:
            self.kill(known[0])
            known = None
        if known is not None and zone.of(known[1]) == number:
            return known
        for other, entry, direction in self._candidates(t):
            if entry.expires <= self.now or not zone.of(direction) == entry.zone.of(direction) == number:
                continue
            if self._alike(other, t) and self._equal(other, t):
                return entry, direction
        return None

    def _candidates(self, t: Tuple) -> Iterable[tuple[Tuple, ConntrackEntry, int]]:
        """Return the entries that may have this tuple, although its key is not in the table."""
        if not (isinstance(t.sport, PickedPort) or isinstance(t.dport, PickedPort)):
            return self._picked
        return [(entry.tuple(side), entry, side) for entry, side in self._table.values()] + self._picked

    def _alike(self, a: Tuple, b: Tuple) -> bool:
        if (a.src, a.dst, a.proto) != (b.src, b.dst, b.proto):
            return False
        return self.ports.could_equal(a.sport, b.sport) and self.ports.could_equal(a.dport, b.dport)

    def _equal(self, a: Tuple, b: Tuple) -> bool:
        return self.ports.equal(a.sport, b.sport) and self.ports.equal(a.dport, b.dport)

    def taken(self, t: Tuple, ignored: ConntrackEntry) -> bool:
        """Return whether another connection has this tuple (``nf_conntrack_tuple_taken``).

        A connection with the same original tuple in the same zone is the same connection: confirming it
        resolves the clash.
        """
        known = self._entry(t, ignored.zone, ignored.zone.of(REPLY)) if self._table else None
        if known is None or known[0] is ignored:
            return False
        same_zone = known[0].zone.of(ORIGINAL) == ignored.zone.of(ORIGINAL)
        return not same_zone or known[0].original != ignored.original

    def equal_but_port(
        self, t: Tuple, zone: Zone, *, source: bool
    ) -> Iterator[tuple[Port, ConntrackEntry, int]]:
        """Yield the source (or destination) port, entry and direction of tuples otherwise equal to ``t``."""
        for entry, direction in self._table.values():
            known = entry.tuple(direction)
            if entry.zone.of(direction) != zone.of(direction):
                continue
            if entry.expires <= self.now or (known.src, known.dst, known.proto) != (t.src, t.dst, t.proto):
                continue
            others = (known.dport, t.dport) if source else (known.sport, t.sport)
            if self.ports.same(*others):
                yield (known.sport if source else known.dport), entry, direction

    def kill(self, entry: ConntrackEntry) -> None:
        """Remove a connection (``nf_ct_kill``); its packets keep it."""
        for direction in (ORIGINAL, REPLY):
            key = _key(entry.tuple(direction), entry.zone.of(direction))
            if self._table.get(key, (None, 0))[0] is entry:
                del self._table[key]
        self._picked = [p for p in self._picked if p[1] is not entry]
        self.by_source = [e for e in self.by_source if e is not entry]

    def close(self, entry: ConntrackEntry) -> None:
        """Close the connection of a packet that a rule has answered with a RST.

        Linux 6.3 and later do (``nf_conntrack_tcp_set_closing``).
        """
        closed = TcpState.CLOSE
        if entry.confirmed and entry.tcp is not None and entry.tcp.state is not closed and self.ports.guess():
            entry.tcp.state = closed
            entry.expires = self.now + self.settings.timeouts.tcp[closed]

    def confirm(self, skb: Skb) -> bool:
        """Enter a new connection whose first packet has passed every hook (``__nf_conntrack_confirm``).

        Return False if another connection has taken one of its tuples; then the packet is dropped.
        """
        entry = skb.entry
        if entry is None or entry.confirmed or skb.direction != ORIGINAL:
            return True
        zone, both = entry.zone, ((entry.original, ORIGINAL), (entry.reply, REPLY))
        if self._table and any(self._entry(t, zone, zone.of(side)) for t, side in both):
            return False
        entry.confirmed = True
        entry.status |= _CONFIRMED
        entry.expires += self.now
        for t, direction in both:
            # With zones of one direction, two connections can have one tuple in opposite directions.
            key = t if zone is NO_ZONE else _key(t, zone.of(direction))
            stored = self._table.setdefault(key, (entry, direction))
            if stored[0] is not entry or isinstance(t.sport, PickedPort) or isinstance(t.dport, PickedPort):
                self._picked.append((t, entry, direction))
        if entry.original == entry.reply and zone.of(ORIGINAL) == zone.of(REPLY):
            # The reply is entered last, at the head of the list (__nf_conntrack_hash_insert).
            self._table[key] = (entry, REPLY)
        return True

    # Packets

    def track(self, skb: Skb, *, incoming: bool) -> None:
        """Attach a packet to its connection (``nf_conntrack_in``).

        ``incoming``: the hook is PREROUTING, the only one where checksums are verified.
        """
        zone = NO_ZONE
        if skb.entry is not None and skb.entry.template is not None:
            template = skb.entry.template
            zone = Zone(skb.mark & 0xFFFF if template.zone is None else template.zone, template.side)
            skb.entry, skb.state = None, None
        if skb.entry is not None or skb.state is ConnectionState.UNTRACKED:
            return
        skb.state = ConnectionState.INVALID
        packet = skb.packet
        if packet.truncated:
            return  # tcp_error, udp_error, sctp_error, nf_conntrack_icmp_error …
        if incoming and self.settings.checksum and _sum_is_refused(packet):
            return
        if packet.is_icmp and self._settle_icmp(skb, zone, packet.proto, packet.icmp_type or 0):
            self._note_timer(skb)
            return
        if packet.proto == Protocol.TCP and not valid_flags(packet.flags):
            return
        self._attach(skb, zone)
        self._note_timer(skb)

    def _note_timer(self, skb: Skb) -> None:
        """Note how long the packet's connection is still known."""
        entry = skb.entry
        skb.left = None if entry is None or not entry.confirmed else entry.expires - self.now

    def _settle_icmp(self, skb: Skb, zone: Zone, proto: int, icmp_type: int) -> bool:
        """Set the state of ICMP other than queries and answers; return False for queries and answers."""
        if proto == Protocol.ICMP:
            if icmp_type in ICMP_ERRORS:
                self._relate(skb, zone)
            return icmp_type > NR_ICMP_TYPES or icmp_type in ICMP_ERRORS
        if icmp_type in ICMP6_UNTRACKED:
            skb.state = ConnectionState.UNTRACKED
            return True
        if icmp_type < 128 or icmp_type == ICMP6_REDIRECT:
            self._relate(skb, zone)
            return True
        return False

    def _relate(self, skb: Skb, zone: Zone) -> None:
        """Attach an ICMP error to the connection that it quotes (``nf_conntrack_inet_error``)."""
        quoted = skb.packet.quoted
        if quoted is None:
            return
        quoted_tuple = tuple_of(quoted)
        inner = None if quoted_tuple is None else invert(quoted_tuple)
        match = None if inner is None else self.find(inner, zone)
        if match is None:
            return
        entry, direction = match
        if skb.packet.dst != entry.tuple(direction).dst:
            return
        skb.entry, skb.direction = entry, direction
        skb.state = ConnectionState.RELATED

    def _attach(self, skb: Skb, zone: Zone) -> None:
        """Attach a packet to its connection or to a new one (``resolve_normal_ct``)."""
        t = tuple_of(skb.packet)
        skb.attached = False
        if t is None:
            return
        match = self.find(t, zone)
        if match is None:
            reply = invert(t)
            if reply is None:
                return
            entry, direction = ConntrackEntry(t, reply, zone=zone), ORIGINAL
        else:
            entry, direction = match
        if direction == REPLY or entry.status & _SEEN_REPLY:
            state = ConnectionState.ESTABLISHED
        else:
            state = ConnectionState.NEW
        match self._follow(entry, direction, skb.packet):
            case TcpVerdict.ACCEPT:
                entry.count(direction, skb.packet.length)
            case TcpVerdict.IGNORE:
                pass
            case TcpVerdict.INVALID | TcpVerdict.DISTRUST:
                return
            case TcpVerdict.REOPEN:
                self.kill(entry)
                self._attach(skb, zone)
                return
            case TcpVerdict.KILL:
                entry.count(direction, skb.packet.length)
                self.kill(entry)
        skb.entry, skb.direction, skb.state = entry, direction, state
        if direction == REPLY and state is ConnectionState.ESTABLISHED:
            entry.status |= _SEEN_REPLY

    def _follow(self, entry: ConntrackEntry, direction: int, packet: Packet) -> TcpVerdict:
        timeouts = self.settings.timeouts
        match packet.proto:
            case Protocol.TCP:
                return self._follow_tcp(entry, direction, packet)
            case Protocol.UDP:
                self._follow_udp(entry)
            case Protocol.UDPLITE:
                self._follow_stream(entry, timeouts.udp, timeouts.udp_stream)
            case _ if packet.proto == GRE:
                self._follow_stream(entry, timeouts.gre, timeouts.gre_stream)
            case Protocol.ICMP | Protocol.ICMPV6:
                assert isinstance(entry.original.dport, int)
                is_icmp = packet.proto == Protocol.ICMP
                requests = ICMP_REQUESTS if is_icmp else ICMP6_REQUESTS
                if entry.original.dport >> 8 not in requests:
                    return TcpVerdict.INVALID
                self._refresh(entry, timeouts.icmp if is_icmp else timeouts.icmpv6)
            case Protocol.SCTP:
                # Only heartbeats are sent here; they neither begin nor end an association.
                self._refresh(entry, timeouts.sctp)
            case _:
                self._refresh(entry, timeouts.generic)
        return TcpVerdict.ACCEPT

    def _follow_tcp(self, entry: ConntrackEntry, direction: int, packet: Packet) -> TcpVerdict:
        if entry.tcp is None:
            entry.tcp = TcpTrack(
                loose=self.settings.tcp_loose,
                liberal=self.settings.tcp_be_liberal,
                ignore_invalid_rst=self.settings.tcp_ignore_invalid_rst,
            )
            if not entry.tcp.start(packet):
                return TcpVerdict.INVALID
        seen_reply = bool(entry.status & _SEEN_REPLY)
        verdict = entry.tcp.packet(packet, direction, seen_reply=seen_reply)
        if verdict is TcpVerdict.ACCEPT:
            if entry.tcp.assured:
                entry.status |= _ASSURED
            timeout = entry.tcp.timeout(packet, self.settings.timeouts, seen_reply=seen_reply)
            self._refresh(entry, timeout)
        elif verdict is TcpVerdict.DISTRUST and entry.expires - self.now >= _SHRINKS_FROM:
            soonest = self.now + self.settings.timeouts.tcp_unacknowledged
            entry.expires = min(entry.expires, soonest)
        return verdict

    def _follow_udp(self, entry: ConntrackEntry) -> None:
        """Refresh the entry of a UDP packet (``nf_conntrack_udp_packet``)."""
        timeouts = self.settings.timeouts
        if not entry.confirmed:
            entry.udp_stream_after = self.now + 2
        stream = bool(entry.status & _SEEN_REPLY) and self.now > entry.udp_stream_after
        self._refresh(entry, timeouts.udp_stream if stream else timeouts.udp)
        if stream:
            entry.status |= _ASSURED

    def _follow_stream(self, entry: ConntrackEntry, before: float, after: float) -> None:
        """Refresh an entry, ASSURED once answered (``nf_conntrack_udplite_packet``, ``…_gre_packet``)."""
        answered = bool(entry.status & _SEEN_REPLY)
        self._refresh(entry, after if answered else before)
        if answered:
            entry.status |= _ASSURED

    def _refresh(self, entry: ConntrackEntry, timeout: float) -> None:
        """Restart the timeout of an entry; before confirmation, only set it (``nf_ct_refresh_acct``)."""
        entry.expires = timeout if not entry.confirmed else self.now + timeout


def _sum_is_refused(packet: Packet) -> bool:
    """Return whether the tracker refuses the packet's checksum (``tcp_error``, ``udp_error`` …).

    The checksum of UDP-Lite is computed with the protocol number of UDP (``udplite_error``,
    ``nf_checksum_partial``), so a correct one is always refused.
    """
    if packet.proto == Protocol.UDPLITE:
        return True
    return packet.bad_checksum and (
        packet.is_icmp or packet.proto in (Protocol.TCP, Protocol.UDP, Protocol.SCTP)
    )
