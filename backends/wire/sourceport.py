"""The source port of a packet, apart from everything else in it.

NAT gives each connection another source port, so of a hundred packets of one flow each may be new, although
they differ in the source port and the checksum only.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from backends.wire.plainheaders import transport_header
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

    None also if its header is not plain (:func:`transport_header`), or has no UDP checksum.
    """
    header = transport_header(data)
    if header is None:
        return None
    proto, start = header
    place = start + _CHECKSUMS[proto]
    (port,), (checksum,) = _WORD.unpack_from(data, start), _WORD.unpack_from(data, place)
    if not checksum and proto == _UDP:
        return None
    return Divided(data[:start] + data[start + 2 : place] + data[place + 2 :], port, checksum)
