"""Headers at the start of a packet's payload: GRE, and ESP, AH and IPComp of IPsec; truncated headers."""

from __future__ import annotations

from typing import Final, NamedTuple

from backends.model.packet import GRE, Packet
from backends.model.withfields import with_fields
from translate.ir import PORT_PROTOCOLS

__all__ = ["leading", "leading_ports", "security_index", "with_security_index"]

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


def leading(packet: Packet) -> bytes:
    """Return the header in the payload of a packet, or a usual one where the payload is empty."""
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
    return with_fields(packet, payload=changed + packet.payload[len(header) :])
