"""The outcome of a packet, by the packets that came out after it was sent.

The most certain evidence decides. A packet that was seen to leave or to be delivered did so, whatever else
came out. Otherwise an answer to its sender (an ICMP error that quotes it, a RST that fits it) shows that it
was rejected. If there is no answer, it was dropped. :mod:`backends.replay.unrouted` explains how packets
without a route are judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from backends.model.conversation import Arrival, Emission
from backends.model.outcome import Outcome, QuotedTuple, Verdict
from backends.model.packet import Icmp6Type, IcmpType, Packet
from backends.replay.answers import is_stack_answer, rejection_by, rejects_reset
from backends.replay.unrouted import LEFT_OUT_OR_DROPPED, NO_ERROR
from backends.testbed.tapnode import Sighting
from backends.wire.frames import Identity, identity
from backends.wire.parsing import FrameError, parse
from backends.wire.sourceport import divide
from translate.dataclass import dataclass, replace
from translate.ir import Family, RejectKind

__all__ = ["FrameReader", "Observed", "observe"]

_DROP: Final = Outcome(verdict=Verdict.DROP)
_INNER: Final = "quoted packet: "


@dataclass(frozen=True, slots=True)
class Observed:
    """The outcome of a packet, its arrival if it left or was delivered, and notes on what else came out."""

    outcome: Outcome
    arrival: Arrival | None
    notes: tuple[str, ...]


def _without_error(verdict: Verdict) -> Observed:
    return Observed(Outcome(verdict=verdict, reject_with=RejectKind.ICMP_NET_UNREACHABLE.value), None, ())


_ERROR_DROPPED: Final = _without_error(Verdict.DROP)
_ERROR_OPEN: Final = _without_error(Verdict.UNKNOWN)


class _Received(NamedTuple):
    """A sighting and its parsed packet."""

    packet: Packet
    sighting: Sighting
    faults: tuple[str, ...]
    identity: Identity


class FrameReader:
    """Reads packets that came out.

    Packets that are equal to an earlier one, or differ from it in the source port only, are not parsed again.
    """

    def __init__(self) -> None:
        self._known: dict[Sighting, _Received] = {}
        self._alike: dict[bytes, tuple[int, Packet, Identity]] = {}

    def received(self, sightings: Sequence[Sighting], notes: list[str]) -> list[_Received]:
        """Return the packets, and add a note for each frame that is not a packet."""
        received = []
        for sighting in sightings:
            known = self._known.get(sighting)
            if known is None:
                try:
                    known = self._known[sighting] = self._read(sighting)
                except FrameError as e:
                    notes.append(f"unreadable frame {_where(sighting)}: {e}")
                    continue
            received.append(known)
        return received

    def has(self, wanted: Identity, sightings: Sequence[Sighting]) -> bool:
        """Return whether a packet with this identity is among the packets."""
        return bool(sightings) and any(each.identity == wanted for each in self.received(sightings, []))

    def _read(self, sighting: Sighting) -> _Received:
        """Return a new packet. Raises FrameError."""
        divided = divide(sighting.data)
        if divided is not None and (alike := self._alike.get(divided.rest)) is not None:
            total, packet, its = alike
            if (divided.port + divided.checksum - total) % 0xFFFF == 0:  # this checksum is right, too
                return _Received(replace(packet, sport=divided.port), sighting, (), its)
        parsed = parse(sighting.data)
        its = identity(parsed.packet)
        if divided is not None and not parsed.faults:
            self._alike[divided.rest] = divided.port + divided.checksum, parsed.packet, its
        return _Received(parsed.packet, sighting, parsed.faults, its)


def observe(
    emission: Emission, sent_identity: Identity, sightings: Sequence[Sighting], reader: FrameReader
) -> Observed:
    """Return the outcome of a packet by everything that came out after it was sent."""
    if sightings is NO_ERROR:
        return _ERROR_DROPPED
    if sightings is LEFT_OUT_OR_DROPPED:
        return _ERROR_OPEN
    notes: list[str] = []
    received = reader.received(sightings, notes)
    for each in received:
        if each.identity == sent_identity:
            return _arrived(emission, each, received, notes)
    sent = emission.packet
    reject: str | None = None
    # A packet of the stack on lo never gets a checksum (CHECKSUM_PARTIAL), so the checksum
    # of an answer that was delivered here is not tested.
    for each in received:
        kind = rejection_by(sent, sent_identity, each.packet)
        if kind is not None and reject is None:
            reject = kind
            if each.sighting.out is not None:
                faults = _faults(each)
                if sent.bad_checksum:  # it was sent so on purpose, and the error quotes it unchanged
                    faults = tuple(f for f in faults if not _is_transport_checksum(f.removeprefix(_INNER)))
                notes.extend(f"{f}, in the answer" for f in faults)
        elif (kind is None or kind != reject) and not rejects_reset(sent, each.packet):
            notes.extend(_stray(each))
    if reject is None:
        return Observed(_DROP, None, tuple(notes))
    return Observed(Outcome(verdict=Verdict.REJECT, reject_with=reject), None, tuple(notes))


def _arrived(emission: Emission, arrived: _Received, received: list[_Received], notes: list[str]) -> Observed:
    sent, packet, place = emission.packet, arrived.packet, arrived.sighting
    faults = _faults(arrived)
    if sent.bad_checksum or (emission.entry is None and sent.src == 0):
        # The checksum was sent wrong on purpose, and NAT does not correct it; or the stack has filled
        # in the source of a packet of the node without correcting the checksum (raw_send_hdrinc).
        faults = tuple(f for f in faults if not _is_transport_checksum(f))
    notes.extend(faults)
    local = place.out is None
    for each in received:
        if each is arrived or (local and is_stack_answer(sent, each.packet)):
            continue
        notes.extend(_stray(each))
    if place.mark is None:
        notes.append(f"no mark seen on {place.out}")
    mark = place.mark or 0
    if packet.mark != mark:
        packet = replace(packet, mark=mark)
    quoted = packet.quoted
    outcome = Outcome.passed(
        out=place.out,
        packet=packet,
        ports=(packet.icmp_id if packet.is_icmp else packet.sport, packet.dport),
        mark=place.mark,
        dnat=packet.dst != sent.dst or packet.dport != sent.dport,
        snat=packet.src != sent.src or packet.sport != sent.sport or packet.icmp_id != sent.icmp_id,
        quoted=None if quoted is None else _quoted(quoted),
    )
    return Observed(outcome, Arrival(packet, place.out), tuple(notes))


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
