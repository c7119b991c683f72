"""``-m dst --dst-opts`` and ``-m hbh --hbh-opts``: the options in a header of IPv6 (``hbh_mt6``)."""

from __future__ import annotations

from backends.model.packet import Packet
from backends.wire.ipv6header import pack_options
from translate.ir import Field, HeaderOptions

__all__ = ["begins_with", "options_hold"]


def options_hold(test: HeaderOptions, packet: Packet) -> bool:
    """Return whether a packet passes a test; its headers have the one option that ``pack_options`` writes."""
    units = packet.hop_options if test.header is Field.HOP_LENGTH else packet.destination_options
    return units is not None and begins_with(test, pack_options(units, 0)[2:])


def begins_with(test: HeaderOptions, data: bytes) -> bool:
    """Return whether the bytes behind the first two of a header begin with the options, in order."""
    at = 0
    for number, (kind, length) in enumerate(test.options, 1):
        if at >= len(data) or data[at] != kind:
            return False
        size = 1
        if kind:
            if at + 1 >= len(data) or length not in (None, data[at + 1]):
                return False
            size = data[at + 1] + 2
        at += size
        if at > len(data) and number < len(test.options):
            return False
    return True
