"""Protocols, ICMP messages and special addresses for random flows."""

from __future__ import annotations

from typing import Final

from backends.model.packet import GRE, NO_NEXT_HEADER, Icmp6Type, IcmpType
from translate.dataclass import dataclass
from translate.ir import Family, Protocol, parse_address

__all__ = [
    "GRE_HEADERS",
    "ICMP",
    "LOOPBACK",
    "MULTICAST",
    "ODD_ADDRESSES",
    "OTHER_PROTOCOLS",
    "Icmp",
    "is_of_link",
]

_LISTENER, _ESP, _OSPF, _NOBODY = 2, 50, 89, 99
OTHER_PROTOCOLS: Final = {
    Family.IP: (Protocol.SCTP, Protocol.UDPLITE, GRE, _ESP, _LISTENER, _OSPF, _NOBODY),
    Family.IP6: (Protocol.SCTP, Protocol.UDPLITE, GRE, _ESP, NO_NEXT_HEADER, _OSPF, _NOBODY),
}
"""Protocols other than TCP, UDP and ICMP: with and without a tracker of their own in conntrack."""

GRE_HEADERS: Final = tuple(
    bytes.fromhex(text)
    for text in (
        *("00006558", "000065580000", "2001880b00080007", "2001880b00080008"),
        *("2001080000080007", "0002880b00080007", "0000"),
    )
)
"""Beginnings of GRE packets: of version 0, enhanced with a key, for no PPP, of no known version, and short.

Conntrack reads eight bytes of a GRE packet (``gre_pkt_to_tuple``).
"""

ODD_ADDRESSES: Final = {
    Family.IP: tuple(
        parse_address(Family.IP, text)
        for text in (
            *("0.0.0.0", "127.0.0.1", "127.0.0.53", "8.8.8.8", "192.168.1.1", "203.0.113.7"),
            *("224.0.0.9", "239.255.255.250", "255.255.255.255"),
        )
    ),
    Family.IP6: tuple(
        parse_address(Family.IP6, text)
        for text in (
            *("::", "::1", "::9", "::ffff:10.0.0.1", "2001:4860:4860::8888", "fd99::1", "2002:a00:1::1"),
            *("fe80::9", "fec0::1", "ff01::1", "ff02::1", "ff02::2", "ff02::1:ff00:1", "ff05::2", "ff0e::1"),
        )
    ),
}
"""One or more addresses of every kind that a network stack distinguishes."""

MULTICAST: Final = {Family.IP: 0xE0000000, Family.IP6: 0xFF << 120}
LOOPBACK: Final = {Family.IP: 0x7F000001, Family.IP6: 1}


def is_of_link(family: Family, address: int) -> bool:
    """Return whether an IPv6 address is multicast or link-local."""
    return family is Family.IP6 and (address >> 118 == 0xFE80 >> 6 or address >= MULTICAST[family])


@dataclass(frozen=True, slots=True, kw_only=True)
class Icmp:
    """The ICMP messages to draw.

    These are queries and answers, messages without an identifier, and errors about a flow's packet.
    ``quoting`` are the ``errors`` that are also sent with a quoted packet that was never sent. ``types`` are
    the types that a stack distinguishes; they are sent without a quoted packet.
    """

    proto: Protocol
    queries: tuple[int, ...]
    types: tuple[int, ...]
    errors: tuple[tuple[int, int], ...]
    quoting: tuple[int, ...]


ICMP: Final = {
    Family.IP: Icmp(
        proto=Protocol.ICMP,
        queries=(8, 8, 8, 8, 0, 14, 17, 15),
        types=(*range(13), *range(14, 20), 30, 40, 41),  # a kernel answers type 13
        errors=((3, 3), (3, 1), (3, 13), (11, 0), (4, 0), (12, 0)),
        quoting=(IcmpType.DEST_UNREACHABLE, IcmpType.TIME_EXCEEDED),
    ),
    Family.IP6: Icmp(
        proto=Protocol.ICMPV6,
        queries=(128, 128, 128, 128, 129),
        types=(*range(1, 6), 100, 127, *range(130, 161), 200),
        errors=((1, 4), (1, 0), (1, 1), (3, 0), (4, 0)),
        quoting=(Icmp6Type.DEST_UNREACHABLE, Icmp6Type.TIME_EXCEEDED),
    ),
}
