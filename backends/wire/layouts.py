"""Layouts of headers, for building packets and for reading them."""

from __future__ import annotations

import struct
from typing import Final

from backends.model.packet import Icmp6Type

__all__ = [
    "ICMP_HEADER",
    "IP_HEADER",
    "MSS_KIND",
    "MSS_OPTION",
    "PORTS",
    "QUERIES",
    "QUERIES_6",
    "SCTP_HEADER",
    "SCTP_HEARTBEAT",
    "TCP_HEADER",
    "UDP_HEADER",
]

IP_HEADER: Final = struct.Struct("!BBHHHBBHII")
TCP_HEADER: Final = struct.Struct("!HHIIBBHHH")
UDP_HEADER: Final = struct.Struct("!HHHH")
MSS_OPTION: Final = struct.Struct("!BBH")
MSS_KIND: Final = 2
ICMP_HEADER: Final = struct.Struct("!BBHHH")
SCTP_HEADER: Final = struct.Struct("!HHIIBBHHH")
PORTS: Final = struct.Struct("!HH")
SCTP_HEARTBEAT: Final = 4
QUERIES: Final = frozenset({0, 8, 13, 14, 15, 16, 17, 18})
"""The ICMP types whose second word begins with an identifier (RFC 792, RFC 950)."""
QUERIES_6: Final = frozenset({Icmp6Type.ECHO_REQUEST, Icmp6Type.ECHO_REPLY})
