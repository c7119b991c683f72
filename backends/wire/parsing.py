"""Bytes to packets: IPv4 and IPv6 with TCP, UDP, ICMP, SCTP and other protocols.

Fast (a few microseconds a packet) and strict: :func:`parse` checks every checksum and length in the headers,
also inside an ICMP error, because a packet whose addresses were rewritten without its checksum would be
dropped by its receiver.
"""

from __future__ import annotations

from typing import Final

from backends.model.packet import TRANSPORT_HEADERS, Fragment, Icmp6Type, IcmpType, Packet
from backends.wire.checksums import crc32c, ones_sum
from backends.wire.ipv6header import unpack_ipv6
from backends.wire.layouts import (
    ICMP_HEADER,
    IP_HEADER,
    MSS_KIND,
    MSS_OPTION,
    PORTS,
    QUERIES,
    QUERIES_6,
    SCTP_HEARTBEAT,
    TCP_HEADER,
    UDP_HEADER,
)
from translate.dataclass import dataclass, replace
from translate.ir import Family, Protocol, TcpFlag

__all__ = ["FrameError", "Parsed", "parse"]

_IPV4: Final = Packet(family=Family.IP, src=0, dst=0, proto=0)
_IPV6: Final = Packet(family=Family.IP6, src=0, dst=0, proto=0)
"""Packets without a body. To change a copy takes less time than to make a packet."""

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
_ERRORS_6: Final = frozenset(
    {
        Icmp6Type.DEST_UNREACHABLE,
        Icmp6Type.PACKET_TOO_BIG,
        Icmp6Type.TIME_EXCEEDED,
        Icmp6Type.PARAMETER_PROBLEM,
    }
)


class FrameError(ValueError):
    """Bytes that are not a complete IPv4 or IPv6 packet; the text names the fault."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A packet read from bytes, and the faults of those bytes (checksums, lengths)."""

    packet: Packet
    faults: tuple[str, ...] = ()


def parse(data: bytes, *, inner: bool = False) -> Parsed:
    """Return the packet in ``data``, and the faults found in it.

    ``inner`` is true for the quotation in an ICMP error, which may be cut short: missing bytes are not
    checked. Raises FrameError without a complete IP header.
    """
    if data[:1] and data[0] >> 4 == 6:
        return _parse6(data, inner=inner)
    if len(data) < 20:
        raise FrameError(f"{len(data)} bytes are not an IPv4 packet")
    first, tos, length, ident, where, ttl, proto, _, src, dst = IP_HEADER.unpack_from(data)
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
    fields: dict[str, object] = {}
    if where & 0x3FFF:
        fields["fragment"] = Fragment(where & 0x1FFF, bool(where & 0x2000), ident)
        whole = False
    fields |= _parse_body(Family.IP, proto, body, src, dst, whole, faults, later=bool(where & 0x1FFF))
    packet = replace(_IPV4, src=src, dst=dst, proto=proto, ttl=ttl, tos=tos, **fields)  # type: ignore[arg-type]  # each _parse_ function sets fields of its own type
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
    fields: dict[str, object] = {}
    later = False
    if header.fragment is not None:
        fields["fragment"], later = header.fragment, header.fragment.offset != 0
        whole = False
    if not header.cut:
        fields |= _parse_body(
            Family.IP6, header.proto, body, header.src, header.dst, whole, faults, later=later
        )
    packet = replace(
        _IPV6,
        src=header.src,
        dst=header.dst,
        proto=header.proto,
        ttl=header.ttl,
        tos=header.tos,
        **fields,  # type: ignore[arg-type]  # each _parse_ function sets fields of its own type
    )
    return Parsed(packet, tuple(faults))


def _parse_body(
    family: Family,
    proto: int,
    body: bytes,
    src: int,
    dst: int,
    whole: bool,
    faults: list[str],
    *,
    later: bool,
) -> dict[str, object]:
    """Return the fields of the transport header; a ``later`` fragment and a truncated packet have none."""
    fields: dict[str, object] = {}
    if later:
        return {"payload": body}
    if whole and len(body) < TRANSPORT_HEADERS.get((family, proto), 0):
        return {"truncated": True, "payload": body}
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
    fields["sport"], fields["dport"], length, checksum = UDP_HEADER.unpack_from(body)
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
    sport, dport, seq, ack, offset, flags, _, _, _ = TCP_HEADER.unpack_from(body)
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
    while at + MSS_OPTION.size <= len(options):
        kind, length = options[at], options[at + 1]
        if kind == MSS_KIND and length == MSS_OPTION.size:
            return int.from_bytes(options[at + 2 : at + 4], "big")
        at += 1 if kind <= 1 or length == 0 else length  # end of list, and no operation
    return None


def _parse_icmp(body: bytes, pseudo: int, whole: bool, fields: dict[str, object], faults: list[str]) -> None:
    """Read ICMP; ``pseudo`` is the sum of ICMPv6's pseudo-header, 0 for ICMP, which has none."""
    if len(body) < 8:
        faults.append(f"ICMP cut short after {len(body)} bytes")
        return
    kind, code, _, ident, _ = ICMP_HEADER.unpack_from(body)
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
    if kind in (QUERIES_6 if pseudo else QUERIES):
        fields["icmp_id"] = ident


def _parse_sctp(body: bytes, whole: bool, fields: dict[str, object], faults: list[str]) -> None:
    if len(body) < 12:
        _parse_ports(body, fields, faults)
        return
    fields["sport"], fields["dport"] = PORTS.unpack_from(body)
    if len(body) >= 20 and body[12] == SCTP_HEARTBEAT:
        fields["payload"] = body[20 : 16 + int.from_bytes(body[18:20], "big")]
    else:
        fields["payload"] = body[12:]
    if whole and crc32c(body[:8] + bytes(4) + body[12:]) != int.from_bytes(body[8:12], "little"):
        faults.append("wrong SCTP checksum")


def _parse_ports(body: bytes, fields: dict[str, object], faults: list[str]) -> None:
    if len(body) < 4:
        faults.append(f"transport header cut short after {len(body)} bytes")
        return
    fields["sport"], fields["dport"] = PORTS.unpack_from(body)
