"""The commonest flow, one UDP datagram without payload from outside, as a few numbers and as bytes.

A large corpus is mostly such flows. Objects with many fields would be slow for so many: a datagram is a plain
tuple, which ``marshal`` supports too, and its outcome is another tuple.

As a packet it has its number as payload, which identifies it; all packets have the same size. The packets
equal those of :func:`backends.wire.frames.build`, and received ones are checked as strictly as by
:func:`backends.wire.parsing.parse`.
"""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import Final

from backends.model.flow import Flow, Send
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, Verdict
from backends.model.packet import Packet
from backends.wire.ipv6header import pack_ipv6
from translate.dataclass import replace
from translate.ir import Family, Protocol

__all__ = [
    "DPORT",
    "SPORT",
    "Datagram",
    "Passed",
    "flow_of",
    "number_of",
    "pack",
    "result_of",
    "to_datagram",
    "unpack",
]

Datagram = tuple[str, str, int, int, int, int, int]
"""A datagram: the flow's id, the interface where it comes in, src, dst, sport, dport, ttl."""
Passed = tuple[str, str | None, int, int, int, int, int, int, bool, bool]
"""Outcome of a datagram: id, interface (None: delivered), src, dst, sport, dport, ttl, mark, dnat, snat."""
SPORT: Final = 4
DPORT: Final = 5
"""The indices of the ports in both tuples."""

_MAGIC: Final = 0x6E667062
_TAG: Final = struct.Struct("!II")
_UDP: Final = int(Protocol.UDP)
_FOUR: Final = struct.Struct("!BBHHHBBHII")
_SIX: Final = struct.Struct("!IHBBQQQQ")
_BODY: Final = struct.Struct("!HHHHII")
"""The header of UDP, and the tag."""
_FOUR_SIZE: Final = _FOUR.size + _BODY.size
_SIX_SIZE: Final = _SIX.size + _BODY.size
_BODY_WORDS: Final = _UDP + 2 * _BODY.size + _MAGIC
_FOUR_WORDS: Final = (0x45 << 8) + _FOUR_SIZE + _UDP
_ONE: Final = Fraction(1)
_LOCAL: Final = Outcome(verdict=Verdict.LOCAL)
_FORWARD: Final = Outcome(verdict=Verdict.FORWARD)


def to_datagram(flow: Flow, family: Family) -> Datagram | None:
    """Return a flow as a datagram; None for any other flow, or for one of another family."""
    if len(flow.steps) != 1:
        return None
    step = flow.steps[0]
    if not isinstance(step, Send) or step.entry is None:
        return None
    packet = step.packet
    sport, dport = packet.sport, packet.dport
    if (
        packet.proto != _UDP
        or packet.family is not family
        or packet.payload
        or packet.bad_checksum
        or packet.tos
        or packet.filled_to
        or packet.smac is not None
        or packet.dmac is not None
        or packet.routing is not None
        or packet.fragment is not None
        or packet.cpu
        or packet.option_headers != (None, None)
        or not isinstance(sport, int)
        or not isinstance(dport, int)
    ):
        return None
    return flow.id, step.entry, packet.src, packet.dst, sport, dport, packet.ttl


def flow_of(datagram: Datagram, family: Family) -> Flow:
    """Return the flow of a datagram."""
    flow_id, entry, src, dst, sport, dport, ttl = datagram
    packet = Packet(family=family, src=src, dst=dst, proto=Protocol.UDP, sport=sport, dport=dport, ttl=ttl)
    return Flow(id=flow_id, steps=(Send(packet=packet, entry=entry),))


def result_of(passed: Passed) -> FlowResult:
    """Return the result of a datagram's flow as a FlowResult."""
    flow_id, out, src, dst, sport, dport, ttl, mark, dnat, snat = passed
    outcome = replace(
        (_LOCAL if out is None else _FORWARD),
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
    # The sums of all words; an address is added as one number (see backends.wire.checksums).
    checksum = 0xFFFF - (_BODY_WORDS + src + dst + sport + dport + number) % 0xFFFF
    body = _BODY.pack(sport, dport, _BODY.size, checksum, _MAGIC, number)
    if family is Family.IP6:
        return pack_ipv6(src=src, dst=dst, proto=_UDP, ttl=ttl, length=_BODY.size) + body
    checksum = (0xFFFF - (_FOUR_WORDS + (ttl << 8) + src + dst) % 0xFFFF) % 0xFFFF
    return _FOUR.pack(0x45, 0, _FOUR_SIZE, 0, 0, ttl, _UDP, checksum, src, dst) + body


def number_of(data: bytes) -> int | None:
    """Return the number of the packet in ``data``, or of the packet that it quotes, or None."""
    if len(data) < _TAG.size:
        return None
    magic, number = _TAG.unpack_from(data, len(data) - _TAG.size)
    return number if magic == _MAGIC else None


def unpack(data: bytes, family: Family) -> tuple[int, int, int, int, int, int] | None:
    """Return the number, src, dst, sport, dport and ttl of a packet of :func:`pack`, perhaps rewritten.

    None for any other packet, and for a packet with a fault or with a TOS, because none is sent with a TOS.
    """
    if family is Family.IP6:
        if len(data) != _SIX_SIZE:
            return None
        first, length, proto, ttl, a, b, c, d = _SIX.unpack_from(data)
        if first >> 20 != 0x600 or length != _BODY.size:
            return None
        src, dst, addresses = a << 64 | b, c << 64 | d, data[8:]
    else:
        if len(data) != _FOUR_SIZE or int.from_bytes(data[:20], "big") % 0xFFFF:
            return None
        version, tos, length, _, fragment, ttl, proto, _, src, dst = _FOUR.unpack_from(data)
        if version != 0x45 or tos or length != _FOUR_SIZE or fragment & 0x3FFF:
            return None
        addresses = data[12:]
    sport, dport, size, checksum, magic, number = _BODY.unpack_from(data, len(data) - _BODY.size)
    if proto != _UDP or size != _BODY.size or magic != _MAGIC or not checksum:
        return None
    # The checksum of UDP covers the addresses, everything after them, and two numbers of the pseudo-header.
    if (int.from_bytes(addresses, "big") + proto + size) % 0xFFFF:
        return None
    return number, src, dst, sport, dport, ttl
