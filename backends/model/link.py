"""Hardware addresses of the node's interfaces and of the neighbour at each, and kinds of frames."""

from __future__ import annotations

from typing import Final

from backends.model.packet import Packet
from translate.ir import PacketType

__all__ = ["BROADCAST_MAC", "device_mac", "eui64", "frame_type", "neighbour_mac"]

BROADCAST_MAC: Final = 0xFFFFFFFFFFFF
_GROUP: Final = 1 << 40


def device_mac(number: int) -> int:
    """Return the hardware address of the node's interface ``number`` (from 1, in order)."""
    return 0x020000000100 | number & 0xFF


def neighbour_mac(number: int) -> int:
    """Return the hardware address of the neighbour that sends packets to the interface ``number``."""
    return 0x020000000200 | number & 0xFF


def eui64(mac: int) -> int:
    """Return the lower half of an address that is made from a hardware address (RFC 4291, appendix A)."""
    return (mac >> 24 << 40 | 0xFFFE << 24 | mac & 0xFFFFFF) ^ 1 << 57


def frame_type(packet: Packet, number: int) -> PacketType:
    """Return the type of the frame that brought a packet to interface ``number`` (``eth_skb_pkt_type``)."""
    if packet.dmac is None or packet.dmac == device_mac(number):
        return PacketType.UNICAST
    if packet.dmac == BROADCAST_MAC:
        return PacketType.BROADCAST
    return PacketType.MULTICAST if packet.dmac & _GROUP else PacketType.OTHERHOST
