"""Marks that HMARK makes from a hash (``xt_HMARK``)."""

from __future__ import annotations

from typing import Final, NamedTuple

from backends.model.leading import leading, leading_ports
from backends.model.packet import EXTENSION_HEADERS, IcmpType, Packet, Port, PortClass
from backends.simulator.conntrack.connection import ConntrackEntry
from backends.simulator.conntrack.skb import Skb
from backends.simulator.matching.undecided import Undecided
from backends.simulator.nat.hashing import jhash2, reciprocal_scale
from backends.wire.frames import build
from translate.ir import PORT_PROTOCOLS, Family, HashMark, Protocol

__all__ = ["hash_mark"]

_WORD: Final = 0xFFFFFFFF
_PORT: Final = 0xFFFF
_ESP: Final = 50
_AH: Final = 51
_ROUTING: Final = 43
_FRAGMENT: Final = 44
_HEADER: Final = {Family.IP: 20, Family.IP6: 40}
_ICMP_HEADER: Final = 8
_SOURCE_QUENCH: Final = 4
_ERRORS: Final = frozenset(
    {
        *(IcmpType.DEST_UNREACHABLE, _SOURCE_QUENCH, IcmpType.REDIRECT),
        *(IcmpType.TIME_EXCEEDED, IcmpType.PARAMETER_PROBLEM),
    }
)
"""The types of ICMP errors (``icmp_is_err``)."""
_ERRORS_6: Final = range(1, 128)
"""The types of ICMPv6 messages in which HMARK looks for another packet (``get_inner6_hdr``)."""

_Ports = tuple[Port, Port] | None


class _Hashed(NamedTuple):
    """The fields that are hashed; without ports, these count as zero, whatever the rule sets."""

    src: int
    dst: int
    proto: int
    ports: _Ports = None


def hash_mark(action: HashMark, skb: Skb) -> int | None:
    """Return the mark that HMARK gives a packet; None if the packet keeps its own.

    Raises Undecided if the mark depends on a port that the kernel picks.
    """
    if action.by_connection:
        hashed = None if skb.entry is None else _of_connection(skb.entry)
    else:
        hashed = _of_packet(skb.packet)
    if hashed is None:
        return None
    if action.modulus == 1:
        return action.offset
    src, dst = _folded(hashed.src & action.source_mask), _folded(hashed.dst & action.destination_mask)
    words = (min(src, dst), max(src, dst), _word(action, hashed.ports))
    scaled = reciprocal_scale(
        jhash2(words, action.seed) ^ hashed.proto & action.protocol_mask, action.modulus
    )
    return (scaled + action.offset) & _WORD


def _folded(address: int) -> int:
    """Return the exclusive or of an address's words (``hmark_addr6_mask``)."""
    return (address ^ address >> 32 ^ address >> 64 ^ address >> 96) & _WORD


def _word(action: HashMark, ports: _Ports) -> int:
    """Return both ports as a word, the higher one first (``hmark_swap_ports``)."""
    if ports is None:
        return 0
    used = []
    for port, shift in zip(ports, (16, 0), strict=True):
        mask, put = action.port_mask >> shift & _PORT, action.port_set >> shift & _PORT
        if isinstance(port, PortClass) and mask & ~put:
            raise Undecided("HMARK hashes a port that the kernel picks")
        used.append(((port if isinstance(port, int) else 0) & mask) | put)
    return max(used) << 16 | min(used)


def _of_connection(entry: ConntrackEntry) -> _Hashed:
    """Return the sources of both directions; of a template they are zero (``hmark_ct_set_htuple``)."""
    original, reply = entry.original, entry.reply
    ports = None if original.proto == Protocol.ICMP else (original.sport, reply.sport)
    return _Hashed(original.src, reply.src, original.proto, ports)


def _of_packet(packet: Packet) -> _Hashed | None:
    """Return the fields of a packet or of the one that it quotes; None if that has no whole IP header."""
    icmp, errors = (Protocol.ICMP, _ERRORS) if packet.family is Family.IP else (Protocol.ICMPV6, _ERRORS_6)
    # HMARK takes the data of a later IPv4 fragment for a header, and leaves fragments of IPv6 alone.
    if packet.proto != icmp or (packet.family is Family.IP6 and packet.fragment is not None):
        return _of_headers(packet)
    data = build(packet)
    message = data[len(data) - _message_length(packet, data) :]
    if len(message) < _ICMP_HEADER or message[0] not in errors:
        return _of_headers(packet)
    if packet.quoted is not None and not packet.is_headless:
        return _of_headers(packet.quoted)
    inner = message[_ICMP_HEADER:]
    return _of_bytes(inner) if packet.family is Family.IP else _of_bytes_6(inner)


def _message_length(packet: Packet, data: bytes) -> int:
    """Return the length of what follows the network headers."""
    length = len(data) - _HEADER[packet.family]
    length -= sum(8 * (units + 1) for units in packet.option_headers if units is not None)
    return length - (0 if packet.routing is None else packet.routing.size)


def _of_headers(packet: Packet) -> _Hashed:
    """Return the fields of a packet itself; a fragment has no ports."""
    ports = _ports(packet) if packet.fragment is None else None
    return _Hashed(packet.src, packet.dst, packet.proto, ports)


def _ports(packet: Packet) -> _Ports:
    """Return the ports, or the two halves of an SPI (``proto_ports_offset``)."""
    if packet.proto in PORT_PROTOCOLS:
        if packet.truncated:
            return leading_ports(packet)
        assert packet.sport is not None
        assert packet.dport is not None
        return packet.sport, packet.dport
    return _halves(packet.proto, leading(packet)) if packet.proto in (_ESP, _AH) else None


def _halves(proto: int, header: bytes) -> _Ports:
    """Return the four bytes of a header that are ports or an SPI; None if they are not whole."""
    start = 4 if proto == _AH else 0
    if proto not in (*PORT_PROTOCOLS, _ESP, _AH) or len(header) < start + 4:
        return None
    return int.from_bytes(header[start : start + 2], "big"), int.from_bytes(
        header[start + 2 : start + 4], "big"
    )


def _of_bytes(data: bytes) -> _Hashed | None:
    """Return the fields of a packet of IPv4 that is no part of the model: bytes of a payload."""
    if len(data) < _HEADER[Family.IP]:
        return None
    src, dst = (int.from_bytes(data[at : at + 4], "big") for at in (12, 16))
    bare = _Hashed(src, dst, data[9])
    if data[9] == Protocol.ICMP or int.from_bytes(data[6:8], "big") & 0x3FFF:
        return bare
    return bare._replace(ports=_halves(data[9], data[(data[0] & 15) * 4 :]))


def _of_bytes_6(data: bytes) -> _Hashed | None:
    """Return the fields of a packet of IPv6 that is no part of the model; None if a header is not whole."""
    if len(data) < _HEADER[Family.IP6] or data[0] >> 4 != Family.IP6.version:
        return None
    src, dst = (int.from_bytes(data[at : at + 16], "big") for at in (8, 24))
    proto, at, fragmented = data[6], _HEADER[Family.IP6], False
    while proto in EXTENSION_HEADERS:
        header = data[at : at + 4]
        if len(header) < (4 if proto in (_FRAGMENT, _ROUTING) else 2):
            return None
        if proto == _AH:
            break
        fragmented |= proto == _FRAGMENT
        if proto == _FRAGMENT and int.from_bytes(header[2:4], "big") & 0xFFF8:
            return None if header[0] in EXTENSION_HEADERS else _Hashed(src, dst, header[0])
        at += 8 if proto == _FRAGMENT else 8 * (header[1] + 1)
        proto = header[0]
    bare = _Hashed(src, dst, proto)
    return bare if fragmented or proto == Protocol.ICMPV6 else bare._replace(ports=_halves(proto, data[at:]))
