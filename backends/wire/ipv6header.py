"""The IPv6 header as bytes: written with options and a routing header, read with any extension headers.

The extension headers before the transport header are skipped as in ``ipv6_skip_exthdr``, so that they are
never read as ports.
"""

from __future__ import annotations

import struct
from typing import Final

from backends.model.packet import Fragment, Routing
from translate.dataclass import dataclass

__all__ = [
    "DESTINATION",
    "FLOW_LABEL",
    "FRAGMENT",
    "HOP_BY_HOP",
    "IPV6_HEADER_SIZE",
    "ROUTING",
    "Ipv6Header",
    "pack_fragment",
    "pack_ipv6",
    "pack_options",
    "pack_routing",
    "unpack_ipv6",
]

IPV6_HEADER_SIZE: Final = 40
FLOW_LABEL: Final = 0xF1A70
"""The flow label of every packet sent; ``backends.testbed.suppress_stack_rst`` finds resets by it."""

_HEADER: Final = struct.Struct("!IHBB16s16s")
_FRAGMENT_HEADER: Final = struct.Struct("!BBHI")
ROUTING: Final = 43
"""The number of a routing header."""

HOP_BY_HOP: Final = 0
"""The number of a header with options for every router."""

DESTINATION: Final = 60
"""The number of a header with options for the destination."""

FRAGMENT: Final = 44
"""The number of a fragment header."""

_AH = 51
_OPTIONS: Final = frozenset({HOP_BY_HOP, ROUTING, DESTINATION})
_PADDING: Final = 1
_EXPERIMENT: Final = 0x1E
"""An option that nodes skip (RFC 4727). The kernel takes at most 7 bytes of padding (``ip6_parse_tlv``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ipv6Header:
    """The contents of the headers before the transport header.

    ``length`` is the length of the whole packet according to the header; ``offset`` is the start of the
    header of protocol ``proto``. ``fragment`` is the place of a fragment in its packet, None for a whole
    packet (also for an "atomic" fragment); ``cut``: the extension headers continue beyond the data.
    """

    src: int
    dst: int
    proto: int
    ttl: int
    tos: int
    length: int
    offset: int
    fragment: Fragment | None = None
    cut: bool = False


def pack_ipv6(*, src: int, dst: int, proto: int, ttl: int, length: int, tos: int = 0) -> bytes:
    """Return the header before ``length`` bytes that begin with a header of ``proto``."""
    packed = src.to_bytes(16, "big"), dst.to_bytes(16, "big")
    return _HEADER.pack(6 << 28 | tos << 20 | FLOW_LABEL, length, proto, ttl, *packed)


def pack_routing(routing: Routing, proto: int) -> bytes:
    """Return a routing header before a header of ``proto``, with zeros after its first four bytes."""
    return bytes((proto, routing.length, routing.type, routing.left)).ljust(routing.size, b"\0")


def pack_options(units: int, proto: int) -> bytes:
    """Return a header with options before a header of ``proto``: one option, which nodes skip."""
    size = 8 * (units + 1)
    kind = _EXPERIMENT if units else _PADDING
    return bytes((proto, units, kind, size - 4)).ljust(size, b"\0")


def pack_fragment(fragment: Fragment, proto: int) -> bytes:
    """Return a fragment header before data of ``proto``."""
    where = fragment.offset << 3 | fragment.more
    return _FRAGMENT_HEADER.pack(proto, fragment.reserved, where, fragment.id or 0)


def unpack_ipv6(data: bytes) -> Ipv6Header | None:
    """Return the headers of the packet in ``data``; None without a complete IPv6 header."""
    if len(data) < IPV6_HEADER_SIZE or data[0] >> 4 != 6:
        return None
    first, length, following, ttl, src, dst = _HEADER.unpack_from(data)
    offset, cut, later = IPV6_HEADER_SIZE, False, False
    fragment: Fragment | None = None
    while following in _OPTIONS or following in (FRAGMENT, _AH):
        if later:
            break  # a later fragment does not continue with a header
        if len(data) < offset + 8:
            cut = True
            break
        protocol, size = following, data[offset + 1]
        if protocol == FRAGMENT:
            _, reserved, where, ident = _FRAGMENT_HEADER.unpack_from(data, offset)
            if where & 0xFFF9 and fragment is None:
                fragment = Fragment(where >> 3, bool(where & 1), ident, reserved)
            later = where & 0xFFF8 != 0
        following = data[offset]
        if protocol == FRAGMENT:
            offset += 8
        else:
            offset += (size + 2) * 4 if protocol == _AH else (size + 1) * 8
    return Ipv6Header(
        src=int.from_bytes(src, "big"),
        dst=int.from_bytes(dst, "big"),
        proto=following,
        ttl=ttl,
        tos=first >> 20 & 0xFF,
        length=IPV6_HEADER_SIZE + length,
        offset=offset,
        fragment=fragment,
        cut=cut or offset > len(data),
    )
