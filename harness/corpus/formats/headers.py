"""Fields of the IP header and of the frame: reading their values, and making packets with other values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from backends.model.clock import LATEST_TIME
from backends.model.leading import (
    MOBILITY_READ,
    has_bare_header,
    leading,
    security_index,
    with_mobility,
    with_security_index,
)
from backends.model.link import BROADCAST_MAC, eui64, frame_type, neighbour_mac
from backends.model.node import Node
from backends.model.packet import NOT_TAKEN, Fragment, Packet, Routing
from harness.corpus.formats.packets import LAST_OFFSET, LONGEST, LONGEST_OPTIONS
from translate.dataclass import replace
from translate.ir import INDEX_PROTOCOLS, MOBILITY, Family, Field, PacketType, Protocol, TcpFlag

__all__ = ["HEADER_FIELDS", "PLAIN_TIME", "header_value", "shortest", "with_header"]

PLAIN_TIME: Final = 1767614400
"""The default time of generated flows: Monday, 2026-01-05T12:00:00."""
_DAY: Final = 86400

_OPTIONS: Final = (Field.HOP_LENGTH, Field.DESTINATION_LENGTH)
_ROUTING: Final = (Field.ROUTING_TYPE, Field.ROUTING_LEFT, Field.ROUTING_LENGTH)
_FRAGMENT: Final = (
    *(Field.FRAGMENT, Field.FRAGMENT_OFFSET, Field.FRAGMENT_MORE, Field.FRAGMENT_ID),
    *(Field.FRAGMENT_RESERVED, Field.FRAGMENT_RESERVED2),
)
"""The fields of a fragment, in the order in which they are set, because some need others to be set first."""
HEADER_FIELDS: Final = (
    *(
        Field.CPU,
        Field.TTL,
        Field.TOS,
        Field.TCP_MSS,
        Field.TCP_OPTIONS,
        *INDEX_PROTOCOLS,
        Field.MH_TYPE,
        *_ROUTING,
        *_OPTIONS,
        *_FRAGMENT,
        Field.LENGTH,
        Field.ETHER_SADDR,
        Field.EUI64,
        Field.PACKET_TYPE,
    ),
)
"""Fields that can be set on a packet independently of its addresses and protocol."""

_MSS_BIT: Final = 1 << 2
"""The value of TCP_OPTIONS for a segment with an MSS: packets have no other option."""
_USUAL_MSS: Final = 1460
_CPUS: Final = (0, 1)
"""The processors that generated flows use: most machines have them."""
_TAG: Final = bytes(8)
"""Stands for the payload that the testbed gives to a packet without one, which has this length."""
_FOR_MOBILITY: Final = 2
"""A type of routing header that a node handles only with ``CONFIG_IPV6_MIP6``."""
_LONGEST_ROUTING: Final = 100
"""The length of a routing header with 50 addresses, in units of 8 bytes."""
_FRAMES: Final[Mapping[Family, Mapping[int, int | None]]] = {
    family: {PacketType.UNICAST: None, PacketType.BROADCAST: BROADCAST_MAC, PacketType.MULTICAST: group}
    for family, group in ((Family.IP, 0x01005E000001), (Family.IP6, 0x333300000001))
}
"""The destination address of each kind of frame that a node receives; None: the device's own."""


def header_value(field: Field, packet: Packet, iif: str, node: Node) -> int | None:
    """Return the value of one of :data:`HEADER_FIELDS`, None when the packet lacks it."""
    number = next((n for n, interface in enumerate(node.interfaces, 1) if interface.name == iif), 0)
    match field:
        case Field.CPU:
            return packet.cpu
        case Field.TTL:
            return packet.ttl
        case Field.TOS:
            return packet.tos
        case Field.TCP_MSS:
            return packet.mss if _announces(packet) else None
        case Field.TCP_OPTIONS:
            if packet.proto != Protocol.TCP or packet.is_headless:
                return None
            return _MSS_BIT if _announces(packet) and packet.mss is not None else 0
        case Field.ESP_SPI | Field.AH_SPI | Field.IPCOMP_CPI:
            if packet.proto != INDEX_PROTOCOLS[field] or packet.is_later_fragment:
                return None
            return security_index(packet)
        case Field.MH_TYPE:
            return leading(packet)[2] if _is_mobile(packet) else None
        case Field.LENGTH:
            return packet.length
        case Field.ROUTING_TYPE | Field.ROUTING_LEFT | Field.ROUTING_LENGTH:
            return None if packet.routing is None else packet.routing[_ROUTING.index(field)]
        case Field.HOP_LENGTH | Field.DESTINATION_LENGTH:
            return packet.option_headers[_OPTIONS.index(field)]
        case Field.FRAGMENT:
            return int(packet.is_later_fragment)
        case _ if field in _FRAGMENT:
            return _part_of_fragment(packet, field)
        case Field.EUI64:
            return int(_is_of_frame(packet, number)) if number else None
        case Field.PACKET_TYPE:
            return frame_type(packet, number) if number else PacketType.UNICAST
        case _:
            if not number:
                return None
            return neighbour_mac(number) if packet.smac is None else packet.smac


def with_header(
    packet: Packet, field: Field, value: int, entry: str | None, *, forwarded: bool
) -> Packet | None:
    """Return the packet with another value of one field; None when a sent packet cannot have that value.

    For a ``forwarded`` packet, ``value`` is the TTL after the decrement.
    """
    match field:
        case Field.CPU:
            return replace(packet, cpu=value) if value in _CPUS else None
        case Field.TTL:
            sent = value + forwarded
            return replace(packet, ttl=sent) if 1 + forwarded <= sent <= 0xFF else None
        case Field.TOS:
            return replace(packet, tos=value)
        case Field.TCP_MSS:
            return replace(packet, mss=value) if _announces(packet) else None
        case Field.TCP_OPTIONS:
            if (
                packet.proto != Protocol.TCP
                or packet.is_headless
                or (value and (value != _MSS_BIT or not _announces(packet)))
            ):
                return None
            return replace(packet, mss=(packet.mss or _USUAL_MSS) if value else None)
        case Field.ESP_SPI | Field.AH_SPI | Field.IPCOMP_CPI:
            extends = field is Field.AH_SPI and packet.family is Family.IP6
            if packet.proto != INDEX_PROTOCOLS[field] or extends:
                return None
            return with_security_index(packet, value)
        case Field.MH_TYPE:
            return with_mobility(packet, value) if _is_mobile(packet) else None
        case Field.LENGTH:
            if packet.fragment is not None or packet.truncated:
                return None  # the length of a fragment that is not the last is a multiple of 8
            least = shortest(packet)
            made = replace(packet, filled_to=0 if value == least else value)
            return made if least <= value <= LONGEST and _can_be(made, value) else None
        case Field.ROUTING_TYPE | Field.ROUTING_LEFT | Field.ROUTING_LENGTH:
            return _routed(packet, field, value, whole=forwarded or entry is None)
        case Field.HOP_LENGTH | Field.DESTINATION_LENGTH:
            return _with_options(packet, field, value)
        case _ if field in _FRAGMENT:
            return None if entry is None else _fragment(packet, field, value)
        case Field.CLOCK:
            return replace(packet, time=value) if 0 <= value <= LATEST_TIME else None
        case Field.CLOCK_DAYTIME:
            midnight = _midnight(PLAIN_TIME if packet.time is None else packet.time)
            return replace(packet, time=midnight + value) if 0 <= value < _DAY else None
        case Field.EUI64:
            return _made_from_frame(packet) if value and entry is not None else packet
        case Field.ETHER_SADDR:
            return None if entry is None else replace(packet, smac=value)
        case _:
            if value == PacketType.UNICAST:
                return packet
            destination = _FRAMES[packet.family].get(value)
            return None if destination is None or entry is None else replace(packet, dmac=destination)


def _is_mobile(packet: Packet) -> bool:
    """Return whether the packet has a whole Mobility Header."""
    mobile = packet.proto == MOBILITY and packet.family is Family.IP6 and not packet.is_later_fragment
    return mobile and len(leading(packet)) >= MOBILITY_READ


def _is_of_frame(packet: Packet, number: int) -> bool:
    """Return whether the source address is formed from the frame's hardware source address (EUI-64)."""
    mac = neighbour_mac(number) if packet.smac is None else packet.smac
    return packet.src & _LOWER_HALF == eui64(mac)


def _made_from_frame(packet: Packet) -> Packet:
    """Return the packet with a source address formed from the hardware address of its frame (EUI-64)."""
    mac = _OTHER_MAC if packet.smac is None else packet.smac
    src = packet.src & ~_LOWER_HALF | eui64(mac)
    return replace(packet, src=src, smac=mac)


_LOWER_HALF: Final = (1 << 64) - 1
_OTHER_MAC: Final = 0x020000000300
"""The hardware address of another host than the neighbour."""


def _midnight(time: int) -> int:
    return time - time % _DAY


def _announces(packet: Packet) -> bool:
    """Return whether the packet is a segment that may announce its MSS."""
    bare = packet.proto != Protocol.TCP or packet.is_headless
    return not bare and bool(packet.flags & TcpFlag.SYN)


def _routed(packet: Packet, field: Field, value: int, *, whole: bool) -> Packet | None:
    """Return the packet with a routing header, without ``whole`` only with one that no node processes."""
    parts = list(packet.routing or Routing(0, 0, 0))
    parts[_ROUTING.index(field)] = value
    routing = Routing(*parts)
    if packet.family is Family.IP or routing.length > _LONGEST_ROUTING or packet.quoted is not None:
        return None
    if routing.type == _FOR_MOBILITY or (not whole and (routing.left or routing.type in NOT_TAKEN)):
        return None
    return replace(packet, routing=routing)


_USUAL_OFFSET: Final = 185
"""The offset of a second fragment after a first one of 1,480 bytes, the most in an Ethernet frame."""


def _part_of_fragment(packet: Packet, field: Field) -> int | None:
    """Return a part of the fragment header of IPv6."""
    fragment = packet.fragment
    if fragment is None or packet.family is Family.IP:
        return None
    parts = {
        Field.FRAGMENT_OFFSET: fragment.offset,
        Field.FRAGMENT_MORE: int(fragment.more),
        Field.FRAGMENT_ID: fragment.id,
        Field.FRAGMENT_RESERVED: fragment.reserved,
    }
    return parts.get(field, 0)


def _fragment(packet: Packet, field: Field, value: int) -> Packet | None:
    """Return a fragment with this value; a whole packet for the value 0 of ``Field.FRAGMENT``."""
    if field is Field.FRAGMENT and not value:
        return packet if not packet.is_later_fragment else None
    six = packet.family is Family.IP6
    if packet.quoted is not None or packet.truncated or (field is not Field.FRAGMENT and not six):
        return None
    fragment = packet.fragment or Fragment(_USUAL_OFFSET)
    match field:
        case Field.FRAGMENT_OFFSET:
            fragment = fragment._replace(offset=value, more=fragment.more or not value)
        case Field.FRAGMENT_MORE:
            fragment = fragment._replace(more=bool(value))
        case Field.FRAGMENT_ID:
            fragment = fragment._replace(id=value)
        case Field.FRAGMENT_RESERVED:
            fragment = fragment._replace(reserved=value)
        case Field.FRAGMENT_RESERVED2 if value:
            return None
        case _:
            pass
    if fragment.offset > LAST_OFFSET or not (fragment.offset or fragment.more):
        return None
    made = replace(packet, fragment=fragment)
    if not fragment.offset:
        return None if packet.is_later_fragment else made  # its ports are gone
    if packet.destination_options is not None:
        return None
    bare = replace(made, sport=None, dport=None, mss=None, payload=b"")
    return replace(bare, icmp_type=None, icmp_code=None, icmp_id=None)


def _with_options(packet: Packet, field: Field, units: int) -> Packet | None:
    """Return the packet with a header with options of this length."""
    if packet.family is Family.IP or units > LONGEST_OPTIONS or packet.quoted is not None:
        return None
    if field is Field.HOP_LENGTH:
        return replace(packet, hop_options=units)
    return replace(packet, destination_options=units)


def shortest(packet: Packet) -> int:
    """Return the length of the packet as sent, without padding after its payload."""
    header = leading(packet)
    if (
        (packet.payload and not has_bare_header(packet))
        or packet.proto == Protocol.TCP
        or packet.quoted is not None
    ):
        return packet.length
    return replace(packet, payload=header + _TAG).length


def _can_be(packet: Packet, length: int) -> bool:
    return packet.quoted is None and (packet.proto != Protocol.SCTP or length % 4 == 0)
