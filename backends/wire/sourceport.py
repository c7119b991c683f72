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
_HEADERS: Final = {_TCP: (16, 20), _UDP: (6, 8)}
"""The place of the checksum in the transport header, and the header's length without options."""
_SHORTEST: Final = 28
"""The length of a UDP packet over IPv4 without data."""
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
    if len(data) < _SHORTEST:
        return None
    if data[0] == 0x45 and not (data[6] & 0x3F or data[7]):
        proto, start = data[9], 20
    elif data[0] >> 4 == 6:
        proto, start = data[6], 40
    else:
        return None
    place, length = _HEADERS.get(proto, (0, 0))
    if not length or len(data) < start + length:
        return None
    place += start
    (port,), (checksum,) = _WORD.unpack_from(data, start), _WORD.unpack_from(data, place)
    if not checksum and proto == _UDP:
        return None
    return Divided(data[:start] + data[start + 2 : place] + data[place + 2 :], port, checksum)
