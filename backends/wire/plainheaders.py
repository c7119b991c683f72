"""The place of the TCP or UDP header in a packet with nothing between it and a plain IP header."""

from __future__ import annotations

from typing import Final

from translate.ir import Protocol

__all__ = ["transport_header"]

_LENGTHS: Final = {int(Protocol.TCP): 20, int(Protocol.UDP): 8}
"""The length of the header without options."""
_SHORTEST: Final = 28
"""The length of a UDP packet over IPv4 without data."""


def transport_header(data: bytes) -> tuple[int, int] | None:
    """Return the protocol of a packet, and the place of its TCP or UDP header.

    None for another packet, if it has IP options or extension headers, and if it is a fragment or shorter
    than its headers.
    """
    if len(data) < _SHORTEST:
        return None
    if data[0] == 0x45 and not (data[6] & 0x3F or data[7]):
        proto, start = data[9], 20
    elif data[0] >> 4 == 6:
        proto, start = data[6], 40
    else:
        return None
    length = _LENGTHS.get(proto)
    return None if length is None or len(data) < start + length else (proto, start)
