"""Control messages of raw sockets: the mark of a packet, and the parts of its IPv6 header."""

from __future__ import annotations

import socket
import struct
from typing import Final

from backends.wire.ipv6header import pack_ipv6
from translate.ir import Family, parse_address

__all__ = ["mark_in", "with_ipv6_header"]

_LITTLE: Final = struct.pack("=H", 1) == b"\x01\x00"


def mark_in(extra: list[tuple[int, int, bytes]]) -> int:
    """Return the packet mark (``SO_RCVMARK``), or 0."""
    for level, kind, value in extra:
        if level == socket.SOL_SOCKET and kind == socket.SO_MARK:
            return int.from_bytes(value[:4], "little" if _LITTLE else "big")
    return 0


def with_ipv6_header(data: bytes, proto: int, sender: str, extra: list[tuple[int, int, bytes]]) -> bytes:
    """Return a packet from a raw socket of IPv6 with its IPv6 header, which the socket leaves out."""
    src = parse_address(Family.IP6, sender.partition("%")[0])
    dst = ttl = tos = 0
    for level, kind, value in extra:
        if level == socket.IPPROTO_IPV6 and kind == socket.IPV6_PKTINFO:
            dst = int.from_bytes(value[:16], "big")
        elif level == socket.IPPROTO_IPV6 and kind == socket.IPV6_HOPLIMIT:
            ttl = int.from_bytes(value[:4], "little" if _LITTLE else "big")
        elif level == socket.IPPROTO_IPV6 and kind == socket.IPV6_TCLASS:
            tos = int.from_bytes(value[:4], "little" if _LITTLE else "big")
    return pack_ipv6(src=src, dst=dst, proto=proto, ttl=ttl, tos=tos, length=len(data)) + data
