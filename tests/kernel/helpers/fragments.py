"""Packets and their later fragments, with data in which a transport header can be read by mistake.

A later fragment (fragment offset > 0) has no transport header. Its data here is that of a packet with one,
and in IPv6 the flow label is :data:`FLOW_LABEL`, which is a port if the IPv6 header is taken for another.
:func:`drawn_tests` draws tests around these values, of which many would hold if such bytes were read.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from enum import Enum
from typing import Final

from translate.ir import Family

__all__ = ["FLOW_LABEL", "Fragment", "drawn_tests", "fragment", "whole"]

FLOW_LABEL: Final = 0x1234
_DATA: Final = {
    1: struct.pack("!BBHI", 8, 0, 0, 0),
    6: struct.pack("!HHIIBBHHH", 5, 6, 0, 0, 0x60, 2, 1000, 0, 0) + struct.pack("!BBH", 2, 4, 5),
    17: struct.pack("!HHHH", 5, 6, 16, 0) + bytes(8),
    33: struct.pack("!HHBBHBBHII", 5, 6, 6, 0, 0, 1, 0, 0, 0, 0) + bytes(4),
    50: struct.pack("!II", 5, 0) + bytes(8),
    51: struct.pack("!BBHII", 59, 2, 0, 5, 0) + bytes(8),
    58: struct.pack("!BBHI", 128, 0, 0, 0),
    108: struct.pack("!BBH", 59, 0, 5) + bytes(4),
    132: struct.pack("!HHII", 5, 6, 1, 0) + struct.pack("!BBHI", 0, 0, 8, 0) + bytes(4),
}
"""The headers by protocol: port 5 to 6, echo request, SYN with an MSS of 5, index 5, DATA; in units of 8."""


class Fragment(Enum):
    """A part of a packet: its offset in units of 8 bytes, and whether more parts follow."""

    FIRST = (0, True)
    MIDDLE = (3, True)
    LAST = (185, False)


def whole(proto: int, family: Family) -> bytes:
    """Return a packet that is no fragment, to this machine from 127.0.0.2 or ::2."""
    return _packet(proto, family, None)


def fragment(proto: int, family: Family, which: Fragment) -> bytes:
    """Return a fragment whose data begins like the header of ``proto``."""
    return _packet(proto, family, which)


def _packet(proto: int, family: Family, which: Fragment | None) -> bytes:
    data = _DATA[proto].ljust(-len(_DATA[proto]) % 8 + len(_DATA[proto]), b"\0")
    offset, more = (0, False) if which is None else which.value
    ident = proto << 8 | offset
    if family is Family.IP:
        where = offset | more << 13
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(data), ident, where, 64, proto, 0)
        return head + bytes((127, 0, 0, 2, 127, 0, 0, 1)) + data
    first = proto
    if which is not None:
        data = struct.pack("!BBHI", proto, 0, offset << 3 | more, ident) + data
        first = 44
    addresses = (2).to_bytes(16, "big") + (1).to_bytes(16, "big")
    return struct.pack("!IHBB", 6 << 28 | FLOW_LABEL, len(data), first, 64) + addresses + data


_PORTS: Final = ("5", "6", "4:6", "7", "0:100", "24576", "24000:", str(FLOW_LABEL), "0:65535")
_FLAGS: Final = ("--syn", "ALL NONE", "ALL SYN", "SYN,ACK SYN", "FIN FIN")


def drawn_tests(seed: int, family: Family, count: int) -> Iterator[str]:
    """Yield ``count`` tests of transport headers; the same seed draws the same."""
    draw = random.Random(seed)
    for _ in range(count):
        yield _drawn(draw, family)


def _drawn(draw: random.Random, family: Family) -> str:
    no = "! " if draw.random() < 0.3 else ""
    side, ports = draw.choice("sd"), draw.choice(_PORTS)
    match draw.randrange(5):
        case 0:
            name = draw.choice(("udp", "tcp", "sctp", "dccp"))
            return f"-p {name} -m {name} {no}--{side}port {ports}"
        case 1:
            several = ",".join(sorted(draw.sample(("5", "6", "7", "4660", "24576"), 3), key=int))
            return f"-p {draw.choice(('udp', 'tcp'))} -m multiport {no}--{side}ports {several}"
        case 2:
            flags = draw.choice(_FLAGS)
            return f"-p tcp {no}{flags if flags == '--syn' else f'--tcp-flags {flags}'}"
        case 3:
            name = "icmp" if family is Family.IP else "icmpv6"
            kinds = ("8", "0", "8/0") if family is Family.IP else ("128", "96", "1")
            return f"-p {name} {no}--{name}-type {draw.choice(kinds)}"
        case _:
            return f"-p udp --sport {draw.choice(_PORTS)} {no}--dport {draw.choice(_PORTS)}"
