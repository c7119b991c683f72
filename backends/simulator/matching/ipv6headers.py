"""Functions that read the extension headers of IPv6: Mobility Header, routing header, fragment header."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from backends.model.leading import MOBILITY_READ, leading
from backends.model.packet import Fragment
from backends.simulator.matching.contents import contents
from backends.simulator.matching.undecided import Undecided
from backends.simulator.matching.view import HotDrop, Reader, Value, View
from translate.ir import MOBILITY, NO_NEXT_HEADER, Family

__all__ = [
    "ROUTING_LAST_ENTRY",
    "fragment_part",
    "mobility_byte",
    "routing_bytes",
    "routing_in_order",
    "routing_part",
]

_IPV6_HEADER: Final = 40
_UNIT: Final = 8
"""The unit of an extension header's length, in bytes (RFC 8200)."""


def mobility_byte(place: int) -> Reader:
    """Return a reader of a byte of a Mobility Header (``mh_mt6``)."""

    def read(view: View) -> Value:
        packet = view.skb.packet
        if packet.proto != MOBILITY or packet.is_later_fragment:
            return None
        header = leading(packet)
        if len(header) < MOBILITY_READ or header[0] != NO_NEXT_HEADER:
            raise HotDrop
        return header[place]

    return read


def routing_part(number: int) -> Reader:
    """Return a reader of a part of the routing header, which most packets lack (``rt_mt6``)."""
    return lambda view: None if view.skb.packet.routing is None else view.skb.packet.routing[number]


def routing_bytes(start: int, size: int) -> Reader:
    """Return a reader of ``size`` bytes at ``start`` of the routing header, or after its end."""

    def read(view: View) -> Value:
        packet = view.skb.packet
        if packet.routing is None:
            return None
        whole = contents(view.skb)
        at = _IPV6_HEADER + start
        at += 0 if packet.hop_options is None else _UNIT * (packet.hop_options + 1)
        if at + size > len(whole.data):
            return None
        if not all(whole.known[at : at + size]):
            raise Undecided("-m srh reads bytes behind the routing header that the kernel chooses")
        return int.from_bytes(whole.data[at : at + size], "big")

    return read


ROUTING_LAST_ENTRY: Final = routing_bytes(4, 1)
"""Reads the index of the last segment (RFC 8754)."""


def routing_in_order(view: View) -> Value:
    """Return whether at most as many segments are left as the last entry's index (``srh1_mt6``)."""
    packet, last = view.skb.packet, ROUTING_LAST_ENTRY(view)
    return int(packet.routing.left <= last) if packet.routing is not None and isinstance(last, int) else None


def fragment_part(read: Callable[[Fragment], int]) -> Reader:
    """Return a reader of the fragment header, which most packets lack (``frag_mt6``)."""

    def value(view: View) -> Value:
        packet = view.skb.packet
        if packet.fragment is None or packet.family is Family.IP:
            return None
        return read(packet.fragment)

    return value
