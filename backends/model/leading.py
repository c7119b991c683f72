"""Headers at the start of a packet's payload: GRE, IPsec, Mobility Headers of IPv6; truncated headers."""

from __future__ import annotations

from typing import Final, NamedTuple

from backends.model.packet import GRE, Packet
from translate.dataclass import replace
from translate.ir import MOBILITY, NO_NEXT_HEADER, PORT_PROTOCOLS, Family

__all__ = [
    "MOBILITY_READ",
    "has_bare_header",
    "leading",
    "leading_ports",
    "security_index",
    "with_mobility",
    "with_mobility_checksum",
    "with_security_index",
]

_GRE_HEADER: Final = bytes.fromhex("00006558")
"""Version 0 without options, with an Ethernet frame inside (RFC 2784, 2; RFC 7637)."""
_GRE_READ: Final = 8
"""The number of bytes of a GRE packet that identify its connection (``gre_pkt_to_tuple``)."""


_PORTS: Final = 4
"""The length of both ports in bytes."""


class _Layout(NamedTuple):
    """A header of IPsec: its length, and the place and length of the security association's index."""

    size: int
    start: int
    end: int


_IPSEC: Final = {50: _Layout(8, 0, 4), 51: _Layout(12, 4, 8), 108: _Layout(4, 2, 4)}
"""The headers of ESP, AH and IPComp by protocol (RFC 4303, RFC 4302, RFC 3173)."""


_MOBILITY_HEADER: Final = bytes((NO_NEXT_HEADER, 2)) + bytes(22)
"""A message of type 0 after which nothing follows, as long as the longest type has to be
(``mip6_mh_len``)."""
MOBILITY_READ: Final = 6
"""The number of bytes of a Mobility Header that ``-m mh`` needs (``struct ip6_mh``)."""


def leading(packet: Packet) -> bytes:
    """Return the header in the payload of a packet, or a usual one where the payload is empty."""
    if packet.proto == MOBILITY and packet.family is Family.IP6:
        return packet.payload[: len(_MOBILITY_HEADER)] or _MOBILITY_HEADER
    layout = _IPSEC.get(packet.proto)
    if layout is not None:
        return packet.payload[: layout.size] or bytes(layout.size)
    return packet.payload[:_GRE_READ] or _GRE_HEADER if packet.proto == GRE else b""


def security_index(packet: Packet) -> int | None:
    """Return the SPI of an ESP or AH packet or the CPI of an IPComp packet; None without a whole header."""
    layout = _IPSEC.get(packet.proto)
    header = leading(packet)
    if layout is None or len(header) < layout.size:
        return None
    return int.from_bytes(header[layout.start : layout.end], "big")


def has_bare_header(packet: Packet) -> bool:
    """Return whether the payload is a whole header of IPsec or a Mobility Header, and nothing behind it."""
    if packet.proto == MOBILITY and packet.family is Family.IP6:
        return len(packet.payload) == len(_MOBILITY_HEADER)
    layout = _IPSEC.get(packet.proto)
    return layout is not None and len(packet.payload) == layout.size


def with_mobility(packet: Packet, kind: int) -> Packet:
    """Return a packet whose Mobility Header has another type."""
    header = leading(packet)
    changed = header[:2] + bytes((kind,)) + header[3:]
    return replace(packet, payload=changed + packet.payload[len(header) :])


def with_mobility_checksum(packet: Packet, payload: bytes) -> bytes:
    """Return the payload of a packet, in a Mobility Header without a checksum with the right one.

    Without it, no raw socket of the node receives the packet (``rawv6_rcv``).
    """
    mobile = packet.proto == MOBILITY and packet.family is Family.IP6 and not packet.is_later_fragment
    if not mobile or len(payload) < MOBILITY_READ or any(payload[4:6]):
        return payload
    words = int.from_bytes(payload + bytes(len(payload) % 2), "big")
    total = packet.src + packet.dst + MOBILITY + len(payload) + words
    checksum = 0xFFFF - total % 0xFFFF
    return payload[:4] + checksum.to_bytes(2, "big") + payload[6:]


def leading_ports(packet: Packet) -> tuple[int, int] | None:
    """Return the ports of a truncated packet; None if it ends before them, or its protocol has none."""
    if packet.proto not in PORT_PROTOCOLS or len(packet.payload) < _PORTS:
        return None
    return int.from_bytes(packet.payload[:2], "big"), int.from_bytes(packet.payload[2:_PORTS], "big")


def with_security_index(packet: Packet, value: int) -> Packet:
    """Return an IPsec packet with another SPI or CPI. Raises KeyError for any other packet."""
    layout = _IPSEC[packet.proto]
    header = leading(packet)
    index = value.to_bytes(layout.end - layout.start, "big")
    changed = header[: layout.start] + index + header[layout.end :]
    return replace(packet, payload=changed + packet.payload[len(header) :])
