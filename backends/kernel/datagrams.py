"""The commonest flow, one UDP datagram without payload from outside, as a few numbers and as bytes.

A large corpus is mostly such flows. Whoever handles many at once has no use for objects of many fields:
a datagram here is a plain tuple, which ``marshal`` takes too, and what became of it is another.

As a packet it has a payload, its number, by which it is known again; all packets are of one size. They
are what :func:`backends.kernel.frames.build` makes, and are read with the same suspicion as there.
"""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import Final

from backends.flow import Flow, Send
from backends.kernel.ipv6header import FLOW_LABEL
from backends.outcome import FlowResult, Outcome, OutcomeBranch, Verdict
from backends.packet import Packet
from translate.ir import Family, Protocol

__all__ = ["Datagram", "Passed", "flow_of", "number_of", "pack", "result_of", "to_datagram", "unpack"]

Datagram = tuple[str, str, int, int, int, int, int]
"""The flow's id, the interface where it comes in, src, dst, sport, dport, ttl."""
Passed = tuple[str, str | None, int, int, int, int, int, int, bool, bool]
"""The flow's id; where it left, or None if it was delivered; src, dst, sport, dport, ttl and mark as it
did; whether its destination and its source are others than were sent."""

_FOUR: Final = struct.Struct("!BBHHHBBHIIHHHHII")
_SIX: Final = struct.Struct("!IHBBQQQQHHHHII")
_MAGIC: Final = 0x6E667062
_TAG: Final = struct.Struct("!II")
_UDP_SIZE: Final = 8 + _TAG.size
_LOW: Final = 2**64 - 1
_ONE: Final = Fraction(1)


def to_datagram(flow: Flow, family: Family) -> Datagram | None:
    """Return a flow as a datagram; None for all flows of more than that, or of another family."""
    if len(flow.steps) != 1:
        return None
    step = flow.steps[0]
    if not isinstance(step, Send) or step.entry is None:
        return None
    packet = step.packet
    sport, dport = packet.sport, packet.dport
    if (
        packet.proto != Protocol.UDP
        or packet.family is not family
        or packet.payload
        or packet.bad_checksum
        or not isinstance(sport, int)
        or not isinstance(dport, int)
    ):
        return None
    return flow.id, step.entry, packet.src, packet.dst, sport, dport, packet.ttl


def flow_of(datagram: Datagram, family: Family) -> Flow:
    """Return the flow that a datagram stands for."""
    flow_id, entry, src, dst, sport, dport, ttl = datagram
    packet = Packet(family=family, src=src, dst=dst, proto=Protocol.UDP, sport=sport, dport=dport, ttl=ttl)
    return Flow(id=flow_id, steps=(Send(packet=packet, entry=entry),))


def result_of(passed: Passed) -> FlowResult:
    """Return what became of a datagram's flow in the words of all backends."""
    flow_id, out, src, dst, sport, dport, ttl, mark, dnat, snat = passed
    outcome = Outcome(
        verdict=Verdict.LOCAL if out is None else Verdict.FORWARD,
        out=out,
        src=src,
        dst=dst,
        sport=sport,
        dport=dport,
        ttl=ttl,
        mark=mark,
        dnat=dnat,
        snat=snat,
    )
    return FlowResult(flow_id, (OutcomeBranch(_ONE, (outcome,)),))


def pack(datagram: Datagram, number: int, family: Family) -> bytes:
    """Return the datagram as a packet that carries ``number``."""
    _, _, src, dst, sport, dport, ttl = datagram
    total = src + dst + Protocol.UDP + 2 * _UDP_SIZE + sport + dport + _MAGIC + number
    checksum = 0xFFFF - total % 0xFFFF
    if family is Family.IP6:
        return _SIX.pack(
            6 << 28 | FLOW_LABEL,
            _UDP_SIZE,
            Protocol.UDP,
            ttl,
            src >> 64,
            src & _LOW,
            dst >> 64,
            dst & _LOW,
            sport,
            dport,
            _UDP_SIZE,
            checksum,
            _MAGIC,
            number,
        )
    header = 0xFFFF - (0x4500 + _FOUR.size + (ttl << 8 | Protocol.UDP) + src + dst) % 0xFFFF
    return _FOUR.pack(
        0x45,
        0,
        _FOUR.size,
        0,
        0,
        ttl,
        Protocol.UDP,
        header % 0xFFFF,
        src,
        dst,
        sport,
        dport,
        _UDP_SIZE,
        checksum,
        _MAGIC,
        number,
    )


def number_of(data: bytes) -> int | None:
    """Return the number of the packet that this is, or that this quotes; None if it is neither."""
    if len(data) < _TAG.size:
        return None
    magic, number = _TAG.unpack_from(data, len(data) - _TAG.size)
    return number if magic == _MAGIC else None


def unpack(data: bytes, family: Family) -> tuple[int, int, int, int, int] | None:
    """Return src, dst, sport, dport and ttl of a packet of :func:`pack`, whatever was rewritten on its way.

    None if it is none, or anything is wrong with it.
    """
    if family is Family.IP6:
        if len(data) != _SIX.size:
            return None
        first, length, proto, ttl, a, b, c, d, sport, dport, size, checksum, magic, number = _SIX.unpack(data)
        src, dst = a << 64 | b, c << 64 | d
        if first >> 28 != 6 or length != _UDP_SIZE:
            return None
    else:
        if len(data) != _FOUR.size:
            return None
        version, tos, length, ident, fragment, ttl, proto, header, src, dst, *rest = _FOUR.unpack(data)
        sport, dport, size, checksum, magic, number = rest
        words = (version << 8 | tos) + length + ident + fragment + (ttl << 8 | proto) + header + src + dst
        if version != 0x45 or length != _FOUR.size or fragment & 0x3FFF or words % 0xFFFF:
            return None
    if proto != Protocol.UDP or size != _UDP_SIZE or not checksum:
        return None
    total = src + dst + proto + 2 * size + sport + dport + checksum + magic + number
    return None if total % 0xFFFF else (src, dst, sport, dport, ttl)
