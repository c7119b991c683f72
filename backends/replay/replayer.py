"""Replays flows on a TapNode and reports the outcome of each packet.

Runs in the process of the node. The most certain evidence decides the outcome. A packet that was seen to
leave or to be delivered did so, whatever else came out. Otherwise an answer to its sender (an ICMP error that
quotes it, a RST that fits it) shows that it was rejected. If there is no answer when the stack has no more
work, the packet was dropped.

A packet that the node sends to itself crosses ``lo`` and is ``local``, with ``out`` None, like any other
delivery: it does not leave on ``lo``.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from backends.model.conversation import Arrival, Conversation, Emission
from backends.model.flow import Flow, Pause, Repeated, Send
from backends.model.outcome import FlowResult, Outcome, QuotedTuple, Verdict, seen_branches
from backends.model.packet import Icmp6Type, IcmpType, Packet, Port
from backends.model.withfields import with_fields
from backends.replay.answers import is_stack_answer, rejection_by, rejects_reset
from backends.replay.bursts import groups, send_burst
from backends.replay.loader import Loader, Watched
from backends.testbed.tapnode import Sighting, TapNode
from backends.wire.datagrams import DPORT, SPORT, Datagram, Passed, flow_of
from backends.wire.frames import Identity, build, identity
from backends.wire.parsing import FrameError, Parsed, parse
from translate.errors import MachineError
from translate.ir import Family, Protocol, TcpFlag

__all__ = ["Replayer"]

_DROP: Final = Outcome(verdict=Verdict.DROP)
_UNSENT: Final = Outcome(verdict=Verdict.UNSENT)


_MOSTLY: Final = 4
_ALONE: Final = 1024
"""The number of flows to send one by one after a burst with too many uncertain outcomes.

Too many are more than one in :data:`_MOSTLY`.
"""
_FEW: Final = 8
"""The greatest number of packets whose connections are forgotten one by one."""
_INNER: Final = "quoted packet: "

_Key = tuple[int, Port | None]


@dataclass(frozen=True, slots=True)
class _Received:
    """A sighting and its parsed packet."""

    packet: Packet
    sighting: Sighting
    faults: tuple[str, ...]
    identity: Identity


@dataclass(slots=True)
class Replayer:
    """Replays flows on ``tap``, whose rules ``loader`` has loaded."""

    tap: TapNode
    loader: Loader
    _used: defaultdict[int, set[Port | None]] = field(default_factory=lambda: defaultdict(set))
    """The ports of each protocol at which a flow could meet a connection that is not forgotten."""
    _alone: int = 0
    """The number of flows to send one by one before the next burst."""
    _listed: bool = False
    """True if lists of addresses may have entries."""
    _crowded: bool = False
    """True if a translated source port is still in use: a small range of them would soon be exhausted."""
    _sent: list[Packet] = field(default_factory=list)
    """The packets that the last flow has sent."""
    _openers: list[Packet] | None = field(default_factory=list)
    """The packets with which the connections that are not forgotten may have begun; None if they are many."""
    _known: dict[bytes, tuple[Parsed, Identity]] = field(default_factory=dict)
    """The packets that came out in the runs of one flow, parsed: most are equal."""

    def replay(self, flows: Iterable[Flow | Repeated | Datagram]) -> list[FlowResult | Passed]:
        """Run the flows one after the other, or in bursts if that gives the same results."""
        results: list[FlowResult | Passed] = []
        for group in groups(flows):
            if isinstance(group, Repeated):
                results.append(self._repeated(group))
            elif isinstance(group, Flow):
                self._alone = max(0, self._alone - 1)
                results.append(self._once(group))
            elif len(group) == 1 or self.loader.lists or self.loader.watches or self._alone:
                self._alone = max(0, self._alone - len(group))
                results += [self._once(flow_of(datagram, self.tap.family)) for datagram in group]
            else:
                results += self._burst(group)
        return results

    def _once(self, flow: Flow) -> FlowResult:
        return self._repeated(Repeated(flow, 1))

    def _repeated(self, repeated: Repeated) -> FlowResult:
        """Run a flow as often as it requires; only the first run is watched, because watching is slow."""
        flow, loader = repeated.flow, self.loader
        watches = loader.watches and repeated.watched
        conversation, began, watched = Conversation(flow), time.perf_counter(), Watched()
        counts: Counter[tuple[Outcome, ...]] = Counter()
        notes: dict[str, None] = {}
        self._known = {}
        for number in range(repeated.times):
            if not number:
                self._forget_connections_met_by(flow)
                if watches:
                    loader.watch()
            elif loader.lists and (repeated.lists or watched.lists):
                loader.forget_lists()
            outcomes, new_notes = self._flow(conversation.afresh())
            if watches and not number:
                watched = loader.watched()
            if number + 1 < repeated.times:
                self._forget_run()
            counts[outcomes] += 1
            notes.update(dict.fromkeys(new_notes))
        self._record_connections()
        # Only the first run was watched.
        certain = watches and repeated.times == 1
        self._listed |= loader.lists and (watched.lists if certain else repeated.lists or watched.lists)
        return FlowResult(
            flow.id,
            seen_branches(counts),
            tuple(notes),
            repeated.times,
            rarest=watched.rarest,
            lists=watched.lists,
            dependent=watched.dependent,
            settled=watched.settled,
            seconds=time.perf_counter() - began,
        )

    def _burst(self, burst: list[Datagram]) -> list[FlowResult | Passed]:
        used = self._used[Protocol.UDP]
        sent = {datagram[SPORT] for datagram in burst}
        self._forget_if(not used.isdisjoint(sent))
        if self.loader.pins:
            self.tap.run_on(0)
        try:
            ends = send_burst(self.tap, burst)
        except KeyError as e:
            raise MachineError(f"the node has no interface {e}") from None
        self._openers = None
        arrival_ports = {end[DPORT] for end in ends if end is not None}
        used |= arrival_ports
        used.update([datagram[DPORT] for datagram in burst])
        # A flow whose source port is the port at which another flow arrived may have met its connection.
        certain = [None if end is None or end[SPORT] in arrival_ports else end for end in ends]
        uncertain = [
            flow_of(d, self.tap.family) for d, end in zip(burst, certain, strict=True) if end is None
        ]
        if uncertain:
            self.tap.settle()
            if len(uncertain) > len(burst) // _MOSTLY:
                self._alone = _ALONE
            packets = [flow.first.packet for flow in uncertain]
            sent -= {packet.sport for packet in packets if self.loader.forget_one(self.tap, packet)}
        used |= sent
        alone = iter(uncertain)
        return [self._once(next(alone)) if end is None else end for end in certain]

    def _forget_run(self) -> None:
        """Forget the connections of the last flow; each began with one of the flow's packets."""
        if not all(self.loader.forget_one(self.tap, packet) for packet in _beginnings(self._sent)):
            self.loader.forget_connections(self.tap)

    def _record_connections(self) -> None:
        """Record the connections of the last flow, which stay until another flow could meet them."""
        if self._openers is not None:
            openers = [*self._openers, *_beginnings(self._sent)]
            self._openers = openers if len(openers) <= _FEW else None

    def _forget_connections_met_by(self, flow: Flow) -> None:
        """Forget the connections that this flow could meet."""
        keys = [_key(s.packet) for s in flow.steps if isinstance(s, Send)]
        self._forget_if(any(port in self._used[proto] for proto, port in keys))

    def _forget_if(self, meet: bool) -> None:
        """Empty lists of addresses, and forget all connections if the next flow could ``meet`` one."""
        if self._listed:
            self.loader.forget_lists()
            self._listed = False
        if meet or self._crowded:
            openers, self._openers = self._openers, []
            # To forget every connection, the kernel walks the table of the whole machine.
            if self._crowded or openers is None or not self.loader.forget_all(self.tap, openers):
                self.loader.forget_connections(self.tap)
            for ports in self._used.values():
                ports.clear()
            self._crowded = False

    def _flow(self, conversation: Conversation) -> tuple[tuple[Outcome, ...], list[str]]:
        """Run a flow and return the outcomes of its packets, with notes."""
        outcomes: list[Outcome] = []
        notes: list[str] = []
        crowding: list[Packet] = []
        self._sent.clear()
        for number, step in enumerate(conversation.flow.steps, 1):
            if isinstance(step, Pause):
                self.tap.wait(step.seconds)
                continue
            emission = conversation.emit(step)
            if emission is None:
                outcomes.append(_UNSENT)
                continue
            self._sent.append(emission.packet)
            if self.loader.gap and len(self._sent) > 1:
                time.sleep(self.loader.gap)
            step_notes: list[str] = []
            outcome, arrival = self._packet(emission, step_notes)
            if arrival is not None:
                conversation.arrived(arrival)
                self._remember(arrival.packet)
                if isinstance(step, Send) and _key(arrival.packet) != _key(emission.packet):
                    crowding.append(emission.packet)
            self._remember(emission.packet)
            outcomes.append(outcome)
            notes.extend(f"step {number}: {note}" for note in step_notes)
        for packet in crowding:
            self._crowded |= not self.loader.forget_one(self.tap, packet)
        return tuple(outcomes), notes

    def _remember(self, packet: Packet) -> None:
        # A later connection meets this one if its source port is any port of this packet,
        # as sent or as it arrived.
        proto, port = _key(packet)
        used = self._used[proto]
        used.add(port)
        if packet.dport is not None:
            used.add(packet.dport)

    def _packet(self, emission: Emission, notes: list[str]) -> tuple[Outcome, Arrival | None]:
        """Send one packet and return its outcome."""
        sent = emission.packet
        tap = self.tap
        tap.listen(sent.proto)
        if sent.family is not tap.family:
            raise MachineError(f"{sent} is not a packet for rules of {tap.family.value}")
        data = build(sent)
        if self.loader.pins:
            tap.run_on(sent.cpu)
        if emission.entry is None:
            tap.originate(data, mark=sent.mark, uid=sent.uid, gid=sent.gid)
        else:
            try:
                tap.inject(emission.entry, data, source=sent.smac, destination=sent.dmac)
            except KeyError:
                raise MachineError(f"the node has no interface {emission.entry!r}") from None
        received = self._read(tap.drain(), notes)
        sent_identity = identity(sent)
        arrived = _arrivals(received, sent_identity)
        if not arrived or emission.entry is None:
            # A packet from the node to itself passes through the backlog of lo, and an answer may do so too.
            received += self._read(tap.settle(), notes)
            arrived = _arrivals(received, sent_identity)
        if arrived:
            return self._arrived(emission, arrived[0], received, notes)
        reject: str | None = None
        # A packet of the stack on lo never gets a checksum (CHECKSUM_PARTIAL), so the checksum
        # of an answer that was delivered here is not tested.
        for sighting in received:
            kind = rejection_by(sent, sent_identity, sighting.packet)
            if kind is not None and reject is None:
                reject = kind
                if sighting.sighting.out is not None:
                    faults = _faults(sighting)
                    if sent.bad_checksum:  # it was sent so on purpose, and the error quotes it unchanged
                        faults = tuple(
                            f for f in faults if not _is_transport_checksum(f.removeprefix(_INNER))
                        )
                    notes.extend(f"{f}, in the answer" for f in faults)
            elif (kind is None or kind != reject) and not rejects_reset(sent, sighting.packet):
                notes.extend(_stray(sighting))
        if reject is not None:
            return Outcome(verdict=Verdict.REJECT, reject_with=reject), None
        return _DROP, None

    def _arrived(
        self, emission: Emission, arrived: _Received, received: list[_Received], notes: list[str]
    ) -> tuple[Outcome, Arrival]:
        sent, packet, place = emission.packet, arrived.packet, arrived.sighting
        faults = _faults(arrived)
        if sent.bad_checksum or (emission.entry is None and sent.src == 0):
            # The checksum was sent wrong on purpose, and NAT does not correct it; or the stack has filled
            # in the source of a packet of the node without correcting the checksum (raw_send_hdrinc).
            faults = tuple(f for f in faults if not _is_transport_checksum(f))
        notes.extend(faults)
        local = place.out is None
        for sighting in received:
            if sighting is arrived or (local and is_stack_answer(sent, sighting.packet)):
                continue
            notes.extend(_stray(sighting))
        if place.mark is None:
            notes.append(f"no mark seen on {place.out}")
        mark = place.mark or 0
        if packet.mark != mark:
            packet = with_fields(packet, mark=mark)
        quoted = packet.quoted
        outcome = Outcome(
            verdict=Verdict.LOCAL if local else Verdict.FORWARD,
            out=place.out,
            src=packet.src,
            dst=packet.dst,
            sport=packet.icmp_id if packet.is_icmp else packet.sport,
            dport=packet.dport,
            ttl=packet.ttl,
            tos=packet.tos,
            mark=place.mark,
            dnat=packet.dst != sent.dst or packet.dport != sent.dport,
            snat=packet.src != sent.src or packet.sport != sent.sport or packet.icmp_id != sent.icmp_id,
            mss=packet.mss if packet.flags.has(TcpFlag.SYN) else None,
            quoted=None if quoted is None else _quoted(quoted),
        )
        return outcome, Arrival(packet, place.out)

    def _read(self, sightings: list[Sighting], notes: list[str]) -> list[_Received]:
        received = []
        for sighting in sightings:
            known = self._known.get(sighting.data)
            if known is None:
                try:
                    parsed = parse(sighting.data)
                except FrameError as e:
                    notes.append(f"unreadable frame {_where(sighting)}: {e}")
                    continue
                known = self._known[sighting.data] = parsed, identity(parsed.packet)
            parsed, its = known
            received.append(_Received(parsed.packet, sighting, parsed.faults, its))
        return received


def _key(packet: Packet) -> _Key:
    return packet.proto, packet.icmp_id if packet.is_icmp else packet.sport


def _beginnings(sent: Iterable[Packet]) -> Iterable[Packet]:
    """Return the packets that may have begun a connection, one of each connection."""
    return {(p.src, p.dst, *_key(p), p.dport): p for p in sent if p.quoted is None}.values()


def _arrivals(received: list[_Received], wanted: Identity) -> list[_Received]:
    return [sighting for sighting in received if sighting.identity == wanted]


def _faults(received: _Received) -> tuple[str, ...]:
    if not received.faults:
        return ()
    return tuple(f"{fault} {_where(received.sighting)}" for fault in received.faults)


def _is_transport_checksum(fault: str) -> bool:
    return fault.startswith("wrong ") and "checksum" in fault and not fault.startswith("wrong IP ")


def _stray(received: _Received) -> tuple[str, ...]:
    redirect = IcmpType.REDIRECT if received.packet.family is Family.IP else Icmp6Type.REDIRECT
    if received.packet.is_icmp and received.packet.icmp_type == redirect:
        return ()
    return (f"stray frame {_where(received.sighting)}: {received.packet}",)


def _where(sighting: Sighting) -> str:
    return "delivered to the node" if sighting.out is None else f"on {sighting.out}"


def _quoted(packet: Packet) -> QuotedTuple:
    ident = packet.icmp_id if packet.is_icmp else packet.sport
    return QuotedTuple(packet.src, packet.dst, ident, packet.dport)
