"""The source port of a packet, apart from everything else in it.

NAT gives each connection another source port, so of a hundred packets of one flow each may be new, although
they differ in the source port and the checksum only.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from translate.ir import Protocol

__all__ = ["Divided", "divide"]

_TCP, _UDP = int(Protocol.TCP), int(Protocol.UDP)
_CHECKSUMS: Final = {_TCP: 16, _UDP: 6}
"""The place of the checksum in the transport header."""
_WORD: Final = struct.Struct("!H")


class Divided(NamedTuple):
    """A packet: its source port, its transport checksum, and all other bytes."""

    rest: bytes
    port: int
    checksum: int


def divide(data: bytes) -> Divided | None:
    """Return the parts of a TCP or UDP packet; None for another one.

    None also if it has IP options or extension headers, if it is a fragment or shorter than its headers, or
    if it has no UDP checksum.
    """
    version = data[:1]
    if version == b"\x45" and len(data) >= 40 and not (data[6] & 0x3F or data[7]):
        proto, start = data[9], 20
    elif version and version[0] >> 4 == 6 and len(data) >= 60:
        proto, start = data[6], 40
    else:
        return None
    place = _CHECKSUMS.get(proto)
    if place is None:
        return None
    place += start
    (port,), (checksum,) = _WORD.unpack_from(data, start), _WORD.unpack_from(data, place)
    if not checksum and proto == _UDP:
        return None
    return Divided(data[:start] + data[start + 2 : place] + data[place + 2 :], port, checksum)
