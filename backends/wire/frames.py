"""Packets to bytes, in a few microseconds each: IPv4 and IPv6 with TCP, UDP, ICMP, SCTP and others."""

from __future__ import annotations

from typing import Any, Final

from backends.model.packet import LONGEST_QUOTE, TRANSPORT_HEADERS, Icmp6Type, Packet
from backends.wire.checksums import crc32c, ones_sum
from backends.wire.ipv6header import (
    DESTINATION,
    FRAGMENT,
    HOP_BY_HOP,
    ROUTING,
    pack_fragment,
    pack_ipv6,
    pack_options,
    pack_routing,
)
from backends.wire.layouts import (
    ICMP_HEADER,
    IP_HEADER,
    MSS_KIND,
    MSS_OPTION,
    QUERIES,
    QUERIES_6,
    SCTP_HEADER,
    SCTP_HEARTBEAT,
    TCP_HEADER,
    UDP_HEADER,
)
from translate.dataclass import replace
from translate.errors import Refusal, UnsupportedError
from translate.ir import NOWHERE, Family, Protocol, TcpFlag

__all__ = ["Identity", "build", "identity", "truncated"]

_WINDOW: Final = 64240
_DONT_FRAGMENT: Final = 0x4000
_SCTP_TAG: Final = 0x6E667061
_MTU: Final = 1400
"""The MTU in a packet-too-big message."""

_KNOWN_BY: Final = 256
"""The bytes of a payload that identify a packet; an ICMP error quotes at least as many."""

_KNOWN_OF_FRAGMENT: Final = 8

Identity = tuple[object, ...]
"""The properties that a packet keeps while it is rewritten on its way; see :func:`identity`."""


def identity(packet: Packet) -> Identity:
    """Return the properties that identify this packet and survive NAT, TTL and marks.

    A TCP segment is identified by its sequence number, and an ICMP error by its quoted packet, which is long
    enough for that. Any other packet, also a truncated segment, is identified by the start of its payload,
    and a later fragment by its first bytes, because ECN may change flags in the bytes after them
    (``set_ect_tcp``).
    """
    if packet.is_later_fragment:
        return (packet.proto, "fragment", packet.payload[:_KNOWN_OF_FRAGMENT])
    if packet.quoted is not None:
        return (packet.proto, "quotes", *identity(packet.quoted))
    if packet.proto == Protocol.TCP and not packet.truncated:
        return (packet.proto, packet.seq)
    return (packet.proto, packet.payload[:_KNOWN_BY])


def build(packet: Packet) -> bytes:
    """Return the packet as bytes, without a link header.

    ``bad_checksum`` spoils the transport checksum (of protocols that have one). SCTP packets are HEARTBEAT
    chunks with the payload, the only chunk that conntrack accepts in either direction without an earlier
    association (``sctp_conntracks``). UDP-Lite packets are correct by RFC 3828, but incoming ones are INVALID
    for Linux's conntrack (6.18 checks the sum with UDP's protocol number), unless ``nf_conntrack_checksum``
    is off. Raises UnsupportedError for DCCP, which is not supported (Linux has no DCCP since 6.16).
    """
    if packet.fragment is not None and not packet.is_later_fragment:
        # The checksum is that of the whole packet, whose other fragments are not known here.
        packet = replace(packet, bad_checksum=True)
    match packet.proto:
        case _ if packet.is_headless:
            body = packet.payload
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
        if packet.destination_options is not None:
            proto, body = DESTINATION, pack_options(packet.destination_options, proto) + body
        if packet.fragment is not None:
            proto, body = FRAGMENT, pack_fragment(packet.fragment, proto) + body
        if packet.routing is not None:
            proto, body = ROUTING, pack_routing(packet.routing, proto) + body
        if packet.hop_options is not None:
            proto, body = HOP_BY_HOP, pack_options(packet.hop_options, proto) + body
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
    flags, ident = _DONT_FRAGMENT if packet.proto == Protocol.TCP else 0, 0
    if packet.fragment is not None:
        flags = packet.fragment.offset | packet.fragment.more << 13
        ident = packet.fragment.id or 0
    # The sum of the header before it is built: each field at its place in its word.
    total = (0x4500 | packet.tos) + length + ident + flags + (packet.ttl << 8 | packet.proto)
    total += packet.src + packet.dst
    checksum = 0xFFFF - (total % 0xFFFF)
    header = IP_HEADER.pack(
        0x45,
        packet.tos,
        length,
        ident,
        flags,
        packet.ttl,
        packet.proto,
        checksum % 0xFFFF,
        packet.src,
        packet.dst,
    )
    return header + body


def truncated(packet: Packet, length: int) -> Packet:
    """Return a packet that has only the first ``length`` bytes of its transport header.

    Raises ValueError if its protocol has no header that the kernel reads, or the header ends before.
    """
    whole = TRANSPORT_HEADERS.get((packet.family, packet.proto), 0)
    if packet.is_headless or packet.fragment is not None or not 0 <= length < whole:
        raise ValueError(f"{packet} has no transport header of more than {length} bytes")
    bare = replace(packet, payload=b"", quoted=None, filled_to=0)
    alone = replace(bare, routing=None, hop_options=None, destination_options=None)
    data = build(alone)[_IP_HEADERS[packet.family] :]
    return replace(bare, **_WITHOUT_HEADER, truncated=True, payload=data[:length])


_IP_HEADERS: Final = {Family.IP: 20, Family.IP6: 40}
_WITHOUT_HEADER: Final[dict[str, Any]] = {
    **dict.fromkeys(("sport", "dport", "icmp_type", "icmp_code", "icmp_id", "mss")),
    "flags": TcpFlag.SYN,
    "seq": 0,
    "ack": 0,
    "bad_checksum": False,
}
"""The fields of a packet without a transport header."""


def _build_udp(packet: Packet) -> bytes:
    payload = packet.payload
    length = 8 + len(payload)
    sport, dport = _port(packet.sport), _port(packet.dport)
    # UDP-Lite has its checksum's coverage where UDP has its length; here it is the whole packet.
    total = packet.src + packet.dst + packet.proto + 2 * length + sport + dport + ones_sum(payload)
    checksum = 0xFFFF - (total % 0xFFFF)
    if packet.bad_checksum:
        checksum = checksum ^ 0x5555 or 0x1234
    return UDP_HEADER.pack(sport, dport, length, checksum) + payload


def _build_tcp(packet: Packet) -> bytes:
    payload = packet.payload
    sport, dport = _port(packet.sport), _port(packet.dport)
    options = b""
    if packet.mss is not None and packet.flags.has(TcpFlag.SYN):
        options = MSS_OPTION.pack(MSS_KIND, MSS_OPTION.size, packet.mss)
    offset = 0x50 + len(options) * 4
    bare = (
        TCP_HEADER.pack(sport, dport, packet.seq, packet.ack, offset, int(packet.flags), _WINDOW, 0, 0)
        + options
    )
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
        payload = build(replace(quoted, bad_checksum=False))[: LONGEST_QUOTE[Family.IP]]
        bare = ICMP_HEADER.pack(kind, code, 0, 0, _MTU if (kind, code) == (3, 4) else 0)
    else:
        payload = packet.payload
        query = kind in QUERIES
        bare = ICMP_HEADER.pack(kind, code, 0, _port(packet.icmp_id), 1 if query else 0)
    checksum = (0xFFFF - (ones_sum(bare) + ones_sum(payload)) % 0xFFFF) % 0xFFFF
    if packet.bad_checksum:
        checksum ^= 0x5555
    return bare[:2] + checksum.to_bytes(2, "big") + bare[4:] + payload


def _build_icmp6(packet: Packet) -> bytes:
    kind, code = packet.icmp_type or 0, packet.icmp_code or 0
    if packet.quoted is not None:
        payload = build(replace(packet.quoted, bad_checksum=False))[: LONGEST_QUOTE[Family.IP6]]
        bare = ICMP_HEADER.pack(kind, code, 0, 0, _MTU if kind == Icmp6Type.PACKET_TOO_BIG else 0)
    else:
        payload = packet.payload
        query = kind in QUERIES_6
        bare = ICMP_HEADER.pack(kind, code, 0, _port(packet.icmp_id) if query else 0, 1 if query else 0)
    total = packet.src + packet.dst + Protocol.ICMPV6 + 8 + len(payload) + ones_sum(bare) + ones_sum(payload)
    checksum = (0xFFFF - total % 0xFFFF) % 0xFFFF
    if packet.bad_checksum:
        checksum ^= 0x5555
    return bare[:2] + checksum.to_bytes(2, "big") + bare[4:] + payload


def _build_sctp(packet: Packet) -> bytes:
    payload = packet.payload
    information = 4 + len(payload)
    bare = SCTP_HEADER.pack(
        _port(packet.sport),
        _port(packet.dport),
        _SCTP_TAG,
        0,
        SCTP_HEARTBEAT,
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


def _port(port: object) -> int:
    # A PortClass exists only in the simulator; None is a packet made without ports.
    return port if isinstance(port, int) else 0


def _unsupported(feature: str, reason: str) -> UnsupportedError:
    return UnsupportedError((Refusal(NOWHERE, "kernel", feature, reason),))
