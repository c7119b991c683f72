"""Packets to bytes and back: IPv4 and IPv6 with TCP, UDP, ICMP, SCTP and other protocols.

Fast (a few microseconds a packet) and strict: :func:`parse` checks every checksum and length in the headers,
also inside an ICMP error, because a packet whose addresses were rewritten without its checksum would be
dropped by its receiver.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from backends.model.packet import LONGEST_QUOTE, Icmp6Type, IcmpType, Packet
from backends.model.withfields import with_fields
from backends.wire.checksums import crc32c, ones_sum
from backends.wire.ipv6header import ROUTING, pack_ipv6, pack_routing, unpack_ipv6
from translate.errors import Refusal, UnsupportedError
from translate.ir import NOWHERE, Family, Protocol, TcpFlag

__all__ = ["FrameError", "Identity", "Parsed", "build", "identity", "parse"]

_IP: Final = struct.Struct("!BBHHHBBHII")
_TCP: Final = struct.Struct("!HHIIBBHHH")
_UDP: Final = struct.Struct("!HHHH")
_MSS: Final = struct.Struct("!BBH")
_MSS_KIND: Final = 2
_ICMP: Final = struct.Struct("!BBHHH")
_SCTP: Final = struct.Struct("!HHIIBBHHH")
_PORTS: Final = struct.Struct("!HH")

_WINDOW: Final = 64240
_DONT_FRAGMENT: Final = 0x4000
_SCTP_TAG: Final = 0x6E667061
_SCTP_HEARTBEAT: Final = 4
_FLAG: Final = tuple(TcpFlag(n) for n in range(256))
_ERRORS: Final = frozenset(
    {
        IcmpType.DEST_UNREACHABLE,
        4,  # source quench
        IcmpType.REDIRECT,
        IcmpType.TIME_EXCEEDED,
        IcmpType.PARAMETER_PROBLEM,
    }
)
_QUERIES: Final = frozenset({0, 8, 13, 14, 15, 16, 17, 18})
"""The ICMP types whose second word begins with an identifier (RFC 792, RFC 950)."""
_ERRORS_6: Final = frozenset(
    {
        Icmp6Type.DEST_UNREACHABLE,
        Icmp6Type.PACKET_TOO_BIG,
        Icmp6Type.TIME_EXCEEDED,
        Icmp6Type.PARAMETER_PROBLEM,
    }
)
_QUERIES_6: Final = frozenset({Icmp6Type.ECHO_REQUEST, Icmp6Type.ECHO_REPLY})
_MTU: Final = 1400
"""The MTU in a packet-too-big message."""

_KNOWN_BY: Final = 256
"""The bytes of a payload that identify a packet; an ICMP error quotes at least as many."""

Identity = tuple[object, ...]
"""The properties that a packet keeps while it is rewritten on its way; see :func:`identity`."""


class FrameError(ValueError):
    """Bytes that are not a complete IPv4 or IPv6 packet; the text names the fault."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A packet read from bytes, and the faults of those bytes (checksums, lengths)."""

    packet: Packet
    faults: tuple[str, ...] = ()


def identity(packet: Packet) -> Identity:
    """Return the properties that identify this packet and survive NAT, TTL and marks.

    A TCP segment is identified by its sequence number, any other packet by the beginning of its payload, and
    an ICMP error by its quoted packet, which has enough of either.
    """
    if packet.quoted is not None:
        return (packet.proto, "quotes", *identity(packet.quoted))
    if packet.proto == Protocol.TCP:
        return (packet.proto, packet.seq)
    return (packet.proto, packet.payload[:_KNOWN_BY])


def build(packet: Packet) -> bytes:
    """Return the packet as bytes, without a link header.

    ``bad_checksum`` spoils the transport checksum (of protocols that have one). SCTP packets are HEARTBEAT
    chunks with the payload, the only chunk that conntrack accepts in either direction without an earlier
    association (``sctp_conntracks``). UDP-Lite packets are correct by RFC 3828, but incoming ones are INVALID
    for Linux's conntrack (6.18 checks the sum with UDP's protocol number), unless ``nf_conntrack_checksum``
    is off. Raises UnsupportedError for DCCP, which has no wire form here (gone from Linux since 6.16).
    """
    match packet.proto:
        case Protocol.UDP | Protocol.UDPLITE:
            body = _build_udp(packet)
        case Protocol.TCP:
            body = _build_tcp(packet)
        case Protocol.ICMP if packet.family is Family.IP:
            body = _build_icmp(packet)
        case Protocol.ICMPV6 if packet.family is Family.IP6:
            body = _build_icmp6(packet)
        case Protocol.SCTP:
            body = _build_sctp(packet)
        case Protocol.DCCP:
            raise _unsupported("dccp", "DCCP packets cannot be replayed on a kernel")
        case _:
            body = packet.payload
    if packet.family is Family.IP6:
        proto = packet.proto
        if packet.routing is not None:
            proto, body = ROUTING, pack_routing(packet.routing, proto) + body
        header = pack_ipv6(
            src=packet.src,
            dst=packet.dst,
            proto=proto,
            ttl=packet.ttl,
            length=len(body),
            tos=packet.tos,
        )
        return header + body
    length = 20 + len(body)
    flags = _DONT_FRAGMENT if packet.proto == Protocol.TCP else 0
    # The sum of the header before it is built: each field at its place in its word.
    total = (
        (0x4500 | packet.tos) + length + flags + (packet.ttl << 8 | packet.proto) + packet.src + packet.dst
    )
    checksum = 0xFFFF - (total % 0xFFFF)
    header = _IP.pack(
        0x45,
        packet.tos,
        length,
        0,
        flags,
        packet.ttl,
        packet.proto,
        checksum % 0xFFFF,
        packet.src,
        packet.dst,
    )
    return header + body


def _build_udp(packet: Packet) -> bytes:
    payload = packet.payload
    length = 8 + len(payload)
    sport, dport = _port(packet.sport), _port(packet.dport)
    # UDP-Lite has its checksum's coverage where UDP has its length; here it is the whole packet.
    total = packet.src + packet.dst + packet.proto + 2 * length + sport + dport + ones_sum(payload)
    checksum = 0xFFFF - (total % 0xFFFF)
    if packet.bad_checksum:
        checksum = checksum ^ 0x5555 or 0x1234
    return _UDP.pack(sport, dport, length, checksum) + payload


def _build_tcp(packet: Packet) -> bytes:
    payload = packet.payload
    sport, dport = _port(packet.sport), _port(packet.dport)
    options = b""
    if packet.mss is not None and packet.flags & TcpFlag.SYN:
        options = _MSS.pack(_MSS_KIND, _MSS.size, packet.mss)
    offset = 0x50 + len(options) * 4
    bare = _TCP.pack(sport, dport, packet.seq, packet.ack, offset, int(packet.flags), _WINDOW, 0, 0) + options
    total = packet.src + packet.dst + Protocol.TCP + len(bare) + len(payload)
    total += ones_sum(bare) + ones_sum(payload)
    checksum = (0xFFFF - total % 0xFFFF) % 0xFFFF
    if packet.bad_checksum:
        checksum ^= 0x5555
    return bare[:16] + checksum.to_bytes(2, "big") + bare[18:] + payload


def _build_icmp(packet: Packet) -> bytes:
    kind, code = packet.icmp_type or 0, packet.icmp_code or 0
    if packet.quoted is not None:
        quoted = packet.quoted
        # The quoted packet has correct checksums, even if this one is sent with a wrong one.
        payload = build(with_fields(quoted, bad_checksum=False))[: LONGEST_QUOTE[Family.IP]]
        bare = _ICMP.pack(kind, code, 0, 0, _MTU if (kind, code) == (3, 4) else 0)
    else:
        payload = packet.payload
        query = kind in _QUERIES
        bare = _ICMP.pack(kind, code, 0, _port(packet.icmp_id), 1 if query else 0)
    checksum = (0xFFFF - (ones_sum(bare) + ones_sum(payload)) % 0xFFFF) % 0xFFFF
    if packet.bad_checksum:
        checksum ^= 0x5555
    return bare[:2] + checksum.to_bytes(2, "big") + bare[4:] + payload


def _build_icmp6(packet: Packet) -> bytes:
    kind, code = packet.icmp_type or 0, packet.icmp_code or 0
    if packet.quoted is not None:
        payload = build(with_fields(packet.quoted, bad_checksum=False))[: LONGEST_QUOTE[Family.IP6]]
        bare = _ICMP.pack(kind, code, 0, 0, _MTU if kind == Icmp6Type.PACKET_TOO_BIG else 0)
    else:
        payload = packet.payload
        query = kind in _QUERIES_6
        bare = _ICMP.pack(kind, code, 0, _port(packet.icmp_id) if query else 0, 1 if query else 0)
    total = packet.src + packet.dst + Protocol.ICMPV6 + 8 + len(payload) + ones_sum(bare) + ones_sum(payload)
    checksum = (0xFFFF - total % 0xFFFF) % 0xFFFF
    if packet.bad_checksum:
        checksum ^= 0x5555
    return bare[:2] + checksum.to_bytes(2, "big") + bare[4:] + payload


def _build_sctp(packet: Packet) -> bytes:
    payload = packet.payload
    information = 4 + len(payload)
    bare = _SCTP.pack(
        _port(packet.sport),
        _port(packet.dport),
        _SCTP_TAG,
        0,
        _SCTP_HEARTBEAT,
        0,
        4 + information,
        1,  # parameter "heartbeat information"
        information,
    )
    body = bare + payload + bytes(-len(payload) % 4)
    checksum = crc32c(body)
    if packet.bad_checksum:
        checksum ^= 0x55555555
    return body[:8] + checksum.to_bytes(4, "little") + body[12:]


def parse(data: bytes, *, inner: bool = False) -> Parsed:
    """Return the packet in ``data``, and the faults found in it.

    ``inner`` is true for the quotation in an ICMP error, which may be cut short: missing bytes are not
    checked. Raises FrameError without a complete IP header.
    """
    if data[:1] and data[0] >> 4 == 6:
        return _parse6(data, inner=inner)
    if len(data) < 20:
        raise FrameError(f"{len(data)} bytes are not an IPv4 packet")
    first, tos, length, _, fragment, ttl, proto, _, src, dst = _IP.unpack_from(data)
    header = (first & 15) * 4
    if first >> 4 != 4 or header < 20 or len(data) < header:
        raise FrameError(f"no IPv4 header: first byte {first:#04x}, {len(data)} bytes")
    faults: list[str] = []
    if int.from_bytes(data[:header], "big") % 0xFFFF:
        faults.append("wrong IP header checksum")
    if length < header or (length > len(data) and not inner):
        faults.append(f"IP length {length}, but {len(data)} bytes")
    whole = length <= len(data)
    body = data[header:length] if whole else data[header:]
    if fragment & 0x3FFF:
        faults.append("a fragment")
        whole = False
    fields = _parse_body(Family.IP, proto, body, src, dst, whole, faults)
    packet = Packet(family=Family.IP, src=src, dst=dst, proto=proto, ttl=ttl, tos=tos, **fields)  # type: ignore[arg-type]  # each _parse_ function sets fields of its own type
    return Parsed(packet, tuple(faults))


def _parse6(data: bytes, *, inner: bool) -> Parsed:
    header = unpack_ipv6(data)
    if header is None:
        raise FrameError(f"{len(data)} bytes are not an IPv6 packet")
    faults: list[str] = []
    if header.length > len(data) and not inner:
        faults.append(f"IP length {header.length}, but {len(data)} bytes")
    if header.cut and not inner:
        faults.append(f"extension headers cut short after {len(data)} bytes")
    whole = header.length <= len(data) and not header.cut
    body = data[header.offset : header.length] if whole else data[header.offset :]
    if header.fragment:
        faults.append("a fragment")
        whole = False
    fields: dict[str, object] = {}
    if not header.cut:
        fields = _parse_body(Family.IP6, header.proto, body, header.src, header.dst, whole, faults)
    packet = Packet(
        family=Family.IP6,
        src=header.src,
        dst=header.dst,
        proto=header.proto,
        ttl=header.ttl,
        tos=header.tos,
        **fields,  # type: ignore[arg-type]  # each _parse_ function sets fields of its own type
    )
    return Parsed(packet, tuple(faults))


def _parse_body(
    family: Family, proto: int, body: bytes, src: int, dst: int, whole: bool, faults: list[str]
) -> dict[str, object]:
    fields: dict[str, object] = {}
    match proto:
        case Protocol.UDP | Protocol.UDPLITE:
            _parse_udp(body, src, dst, proto, whole, fields, faults)
        case Protocol.TCP:
            _parse_tcp(body, src, dst, whole, fields, faults)
        case Protocol.ICMP if family is Family.IP:
            _parse_icmp(body, 0, whole, fields, faults)
        case Protocol.ICMPV6 if family is Family.IP6:
            _parse_icmp(body, src + dst + proto + len(body), whole, fields, faults)
        case Protocol.SCTP:
            _parse_sctp(body, whole, fields, faults)
        case _:
            fields["payload"] = body
    if family is Family.IP6 and proto == Protocol.UDP and whole and body[6:8] == bytes(2):
        faults.append("no UDP checksum")  # RFC 8200, 8.1: a receiver must discard it
    return fields


def _parse_udp(
    body: bytes, src: int, dst: int, proto: int, whole: bool, fields: dict[str, object], faults: list[str]
) -> None:
    if len(body) < 8:
        _parse_ports(body, fields, faults)
        return
    fields["sport"], fields["dport"], length, checksum = _UDP.unpack_from(body)
    fields["payload"] = body[8:]
    if not whole:
        return
    if proto == Protocol.UDP and length != len(body):
        faults.append(f"{Protocol(proto).name} length {length}, but {len(body)} bytes")
    covered = body if proto == Protocol.UDP or length == 0 else body[:length]  # UDP-Lite: 0 is all
    # Zero is "no checksum" for UDP (RFC 768) and forbidden for UDP-Lite (RFC 3828).
    if checksum == 0 and proto == Protocol.UDP:
        return
    if (src + dst + proto + len(body) + ones_sum(covered)) % 0xFFFF:
        faults.append(f"wrong {Protocol(proto).name} checksum")


def _parse_tcp(
    body: bytes, src: int, dst: int, whole: bool, fields: dict[str, object], faults: list[str]
) -> None:
    if len(body) < 20:
        _parse_ports(body, fields, faults)
        if len(body) >= 8:
            fields["seq"] = int.from_bytes(body[4:8], "big")
        return
    sport, dport, seq, ack, offset, flags, _, _, _ = _TCP.unpack_from(body)
    fields.update(sport=sport, dport=dport, seq=seq, ack=ack, flags=_FLAG[flags])
    header = (offset >> 4) * 4
    fields["payload"] = body[header:]
    if header > 20:
        fields["mss"] = _mss(body[20:header])
    if whole and (src + dst + Protocol.TCP + len(body) + ones_sum(body)) % 0xFFFF:
        faults.append("wrong TCP checksum")


def _mss(options: bytes) -> int | None:
    """Return the value of the first MSS option, found as ``tcpmss_mangle_packet`` looks for it."""
    at = 0
    while at + _MSS.size <= len(options):
        kind, length = options[at], options[at + 1]
        if kind == _MSS_KIND and length == _MSS.size:
            return int.from_bytes(options[at + 2 : at + 4], "big")
        at += 1 if kind <= 1 or length == 0 else length  # end of list, and no operation
    return None


def _parse_icmp(body: bytes, pseudo: int, whole: bool, fields: dict[str, object], faults: list[str]) -> None:
    """Read ICMP; ``pseudo`` is the sum of ICMPv6's pseudo-header, 0 for ICMP, which has none."""
    if len(body) < 8:
        faults.append(f"ICMP cut short after {len(body)} bytes")
        return
    kind, code, _, ident, _ = _ICMP.unpack_from(body)
    fields["icmp_type"], fields["icmp_code"] = kind, code
    if whole and (pseudo + ones_sum(body)) % 0xFFFF:
        faults.append("wrong ICMP checksum")
    if kind in (_ERRORS_6 if pseudo else _ERRORS):
        try:
            quoted = parse(body[8:], inner=True)
        except FrameError:
            fields["payload"] = body[8:]  # an error without a quoted packet, perhaps sent so
            return
        fields["quoted"] = quoted.packet
        faults.extend(f"quoted packet: {f}" for f in quoted.faults)
        return
    fields["payload"] = body[8:]
    if kind in (_QUERIES_6 if pseudo else _QUERIES):
        fields["icmp_id"] = ident


def _parse_sctp(body: bytes, whole: bool, fields: dict[str, object], faults: list[str]) -> None:
    if len(body) < 12:
        _parse_ports(body, fields, faults)
        return
    fields["sport"], fields["dport"] = _PORTS.unpack_from(body)
    if len(body) >= 20 and body[12] == _SCTP_HEARTBEAT:
        fields["payload"] = body[20 : 16 + int.from_bytes(body[18:20], "big")]
    else:
        fields["payload"] = body[12:]
    if whole and crc32c(body[:8] + bytes(4) + body[12:]) != int.from_bytes(body[8:12], "little"):
        faults.append("wrong SCTP checksum")


def _parse_ports(body: bytes, fields: dict[str, object], faults: list[str]) -> None:
    if len(body) < 4:
        faults.append(f"transport header cut short after {len(body)} bytes")
        return
    fields["sport"], fields["dport"] = _PORTS.unpack_from(body)


def _port(port: object) -> int:
    # A PortClass exists only in the simulator; None is a packet made without ports.
    return port if isinstance(port, int) else 0


def _unsupported(feature: str, reason: str) -> UnsupportedError:
    return UnsupportedError((Refusal(NOWHERE, "kernel", feature, reason),))
