"""Functions that read a field of a packet at a hook."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from backends.model.clock import clock_value
from backends.model.leading import MOBILITY_READ, leading, leading_ports, security_index
from backends.model.link import eui64, neighbour_mac
from backends.model.packet import Fragment, Packet, Port
from backends.simulator.conntrack.connection import ORIGINAL, REPLY, ConntrackEntry
from backends.simulator.conntrack.skb import Skb, SocketKind
from backends.simulator.matching.contents import contents
from backends.simulator.matching.undecided import Undecided
from backends.simulator.routing.router import AnyRouter
from translate.ir import (
    CLOCKS,
    INDEX_PROTOCOLS,
    MOBILITY,
    NO_NEXT_HEADER,
    Family,
    Field,
    Hook,
    Protocol,
    TcpFlag,
)

__all__ = ["HotDrop", "Reader", "Value", "View", "port_reader", "reader"]

_MSS_KIND: Final = 2
"""The number of the TCP option with the MSS (RFC 9293)."""
_MSS_LENGTH: Final = 4

Value = Port | str | None
"""The value of a field; None if the packet does not have the field."""


class HotDrop(Exception):  # noqa: N818  # par->hotdrop: not an error
    """A match drops the packet, whatever the action of its rule is."""


@dataclass(slots=True)
class View:
    """A packet at one hook, as rules see it; the name of a missing interface is empty."""

    skb: Skb
    hook: Hook
    iif: str
    oif: str
    router: AnyRouter


Reader = Callable[[View], Value]


def reader(field: Field) -> Reader:
    """Return the function that reads ``field``."""
    return _READERS[field]


def port_reader(field: Field) -> Reader:
    """Return the function that reads a port as ``multiport_mt`` does, from the first bytes of the header."""
    side = 0 if field is Field.SPORT else 1

    def read(view: View) -> Value:
        packet = view.skb.packet
        if packet.truncated and (ports := leading_ports(packet)) is not None:
            return ports[side]
        return (packet.sport, packet.dport)[side] if packet.has_ports else _absent(packet)

    return read


def _absent(packet: Packet) -> Value:
    """Return the value of a field of a header that the packet lacks.

    A match that finds a part of the header drops the packet (``tcp_mt``, ``udp_mt``, ``icmp_match`` …), but
    not a later fragment.
    """
    if packet.truncated:
        raise HotDrop
    return None


def _sport(view: View) -> Value:
    packet = view.skb.packet
    return packet.sport if packet.has_ports else _absent(packet)


def _dport(view: View) -> Value:
    packet = view.skb.packet
    return packet.dport if packet.has_ports else _absent(packet)


def _icmp_type(view: View) -> Value:
    packet = view.skb.packet
    return packet.icmp_type or 0 if packet.is_icmp else _absent(packet)


def _icmp_code(view: View) -> Value:
    packet = view.skb.packet
    return packet.icmp_code or 0 if packet.is_icmp else _absent(packet)


def _tcp_flags(view: View) -> Value:
    packet = view.skb.packet
    if packet.is_headless:
        return _absent(packet)
    return int(packet.flags) if packet.proto == Protocol.TCP else None


def _tcp_mss(view: View) -> Value:
    """Return the MSS that a SYN announces; no other segment of a corpus has the option (``tcpmss_mt``)."""
    packet = view.skb.packet
    if packet.is_headless:
        return _absent(packet)
    return packet.mss if packet.proto == Protocol.TCP and packet.flags & TcpFlag.SYN else None


def _tcp_options(view: View) -> Value:
    """Return the kinds of a segment's options; segments of a corpus have no other option than the MSS."""
    packet = view.skb.packet
    if packet.is_headless:
        return _absent(packet)
    if packet.proto != Protocol.TCP:
        return None
    return 0 if _tcp_mss(view) is None else 1 << _MSS_KIND


def _length(view: View) -> Value:
    """Return the length; a segment without its option has padding in its place (``tcpoptstrip_tg``)."""
    skb = view.skb
    return skb.packet.length + (_MSS_LENGTH if skb.stripped and skb.packet.mss is None else 0)


def _security_index(field: Field) -> Reader:
    """Return a reader of an index of IPsec, which only packets of one protocol have (``xt_esp``)."""
    proto = INDEX_PROTOCOLS[field]

    def read(view: View) -> Value:
        packet = view.skb.packet
        if packet.proto != proto or packet.is_later_fragment:
            return None
        index = security_index(packet)
        if index is None:
            raise HotDrop  # the payload ends within the header (ah_mt, esp_mt, comp_mt)
        return index

    return read


def _mobility(place: int) -> Reader:
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


def _ether_saddr(view: View) -> Value:
    """Return the sender's hardware address; a packet made here or on ``lo`` has none (``mac_mt``)."""
    skb = view.skb
    if not skb.link:
        return None
    return neighbour_mac(skb.link) if skb.packet.smac is None else skb.packet.smac


def _is_of_frame(view: View) -> Value:
    """Return whether the IPv6 source is made from the frame's source address (``eui64_mt6``)."""
    mac = _ether_saddr(view)
    return int(view.skb.packet.src & _LOWER_HALF == eui64(mac)) if isinstance(mac, int) else None


_HEARTBEAT: Final = 4
_LOWER_HALF: Final = (1 << 64) - 1


def _of_clock(field: Field) -> Reader:
    def read(view: View) -> Value:
        time = view.skb.packet.time
        assert time is not None, "a packet has a time if a rule reads the clock"
        return clock_value(field, time)

    return read


def _of_routing(number: int) -> Reader:
    """Return a reader of a part of the routing header, which most packets lack (``rt_mt6``)."""
    return lambda view: None if view.skb.packet.routing is None else view.skb.packet.routing[number]


def _in_routing(start: int, size: int) -> Reader:
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


_IPV6_HEADER: Final = 40
_UNIT: Final = 8
_LAST_ENTRY: Final = _in_routing(4, 1)


def _routing_in_order(view: View) -> Value:
    """Return whether at most as many segments are left as the last entry's index (``srh1_mt6``)."""
    packet, last = view.skb.packet, _LAST_ENTRY(view)
    return int(packet.routing.left <= last) if packet.routing is not None and isinstance(last, int) else None


def _sctp_chunks(view: View) -> Value:
    """Return the kinds of a packet's chunks; each SCTP packet of a corpus has one chunk, a heartbeat."""
    packet = view.skb.packet
    if packet.is_headless:
        return _absent(packet)
    return 1 << _HEARTBEAT if packet.proto == Protocol.SCTP else None


def _of_fragment(read: Callable[[Fragment], int]) -> Reader:
    """Return a reader of the fragment header, which most packets lack (``frag_mt6``)."""

    def value(view: View) -> Value:
        packet = view.skb.packet
        if packet.fragment is None or packet.family is Family.IP:
            return None
        return read(packet.fragment)

    return value


def _of_connection(read: Callable[[ConntrackEntry], Value]) -> Reader:
    """Return a reader of a connection's field, absent without a connection (``xt_conntrack``)."""
    return lambda view: None if view.skb.entry is None else read(view.skb.entry)


def _expires(view: View) -> Value:
    """Return the seconds until the connection is forgotten (``nf_ct_expires``)."""
    if view.skb.entry is None:
        return None
    if view.skb.left is None:
        raise Undecided("--ctexpire reads the timer of a connection that is not confirmed yet")
    return int(view.skb.left)


def _of_account(read: Callable[[ConntrackEntry], int]) -> Reader:
    """Return a reader of counts, which a template lacks (``connbytes_mt``)."""
    return _of_connection(lambda entry: None if entry.template is not None else read(entry))


def _counted(read: Callable[[ConntrackEntry], tuple[int, int]], sides: tuple[int, ...]) -> Reader:
    """Return a reader of the packets or bytes of some directions of a connection."""
    return _of_account(lambda entry: sum(read(entry)[side] for side in sides))


def _average(sides: tuple[int, ...]) -> Reader:
    """Return a reader of the average length of packets, 0 where there are none."""

    def read(entry: ConntrackEntry) -> int:
        packets = sum(entry.packets[side] for side in sides)
        return sum(entry.bytes[side] for side in sides) // packets if packets else 0

    return _of_account(read)


_PACKETS: Final = attrgetter("packets")
_BYTES: Final = attrgetter("bytes")
_BOTH: Final = (ORIGINAL, REPLY)


def _reverse_path(view: View) -> Value:
    packet = view.skb.packet
    return int(view.router.leads_back(packet.src, packet.dst, view.iif))


def _reverse_path_by_mark(view: View) -> Value:
    skb = view.skb
    return int(view.router.leads_back(skb.packet.src, skb.packet.dst, view.iif, skb.mark))


def _reverse_route(view: View) -> Value:
    packet = view.skb.packet
    return int(view.router.leads_back(packet.src, packet.dst, view.iif, loose=True))


def _reverse_route_by_mark(view: View) -> Value:
    skb = view.skb
    return int(view.router.leads_back(skb.packet.src, skb.packet.dst, view.iif, skb.mark, loose=True))


_READERS: Final[dict[Field, Reader]] = {
    Field.SADDR: attrgetter("skb.packet.src"),
    Field.DADDR: attrgetter("skb.packet.dst"),
    Field.FRAGMENT: lambda view: int(view.skb.packet.is_later_fragment),
    Field.L4PROTO: attrgetter("skb.packet.proto"),
    Field.SPORT: _sport,
    Field.DPORT: _dport,
    Field.ICMP_TYPE: _icmp_type,
    Field.ICMP_CODE: _icmp_code,
    Field.TCP_FLAGS: _tcp_flags,
    Field.TCP_MSS: _tcp_mss,
    Field.TCP_OPTIONS: _tcp_options,
    **{field: _security_index(field) for field in INDEX_PROTOCOLS},
    Field.LENGTH: _length,
    Field.TTL: attrgetter("skb.packet.ttl"),
    Field.TOS: attrgetter("skb.packet.tos"),
    Field.ETHER_SADDR: _ether_saddr,
    Field.EUI64: _is_of_frame,
    Field.PACKET_TYPE: lambda view: int(view.skb.type),
    Field.ROUTING_TYPE: _of_routing(0),
    Field.ROUTING_LEFT: _of_routing(1),
    Field.ROUTING_LENGTH: _of_routing(2),
    Field.ROUTING_NEXT: _in_routing(0, 1),
    Field.ROUTING_LAST: _LAST_ENTRY,
    Field.ROUTING_FLAGS: _in_routing(5, 1),
    Field.ROUTING_TAG: _in_routing(6, 2),
    Field.ROUTING_IN_ORDER: _routing_in_order,
    Field.ROUTING_FIRST_ADDRESS: _in_routing(8, 16),
    Field.ROUTING_SECOND_ADDRESS: _in_routing(24, 16),
    Field.HOP_LENGTH: attrgetter("skb.packet.hop_options"),
    Field.DESTINATION_LENGTH: attrgetter("skb.packet.destination_options"),
    Field.FRAGMENT_ID: _of_fragment(lambda fragment: fragment.id or 0),
    Field.FRAGMENT_OFFSET: _of_fragment(lambda fragment: fragment.offset),
    Field.FRAGMENT_MORE: _of_fragment(lambda fragment: int(fragment.more)),
    Field.FRAGMENT_RESERVED: _of_fragment(lambda fragment: fragment.reserved),
    Field.FRAGMENT_RESERVED2: _of_fragment(lambda fragment: 0),
    Field.MH_TYPE: _mobility(2),
    Field.MH_NEXT: _mobility(0),
    # a corpus has no packets of DCCP
    Field.DCCP_TYPE: lambda view: None,
    Field.SCTP_CHUNKS: _sctp_chunks,
    # the node's routes have no realms
    Field.REALM: lambda view: 0,
    Field.MARK: attrgetter("skb.mark"),
    Field.CPU: attrgetter("skb.packet.cpu"),
    Field.IIF: attrgetter("iif"),
    Field.OIF: attrgetter("oif"),
    Field.IIF_GROUP: lambda view: view.router.group_of(view.iif) if view.iif else None,
    Field.OIF_GROUP: lambda view: view.router.group_of(view.oif) if view.oif else None,
    Field.CT_STATE: attrgetter("skb.ct_state"),
    Field.CT_STATUS: _of_connection(lambda entry: entry.status),
    Field.CT_MARK: _of_connection(lambda entry: entry.mark),
    Field.CT_DIRECTION: lambda view: None if view.skb.entry is None else view.skb.direction,
    Field.CT_PROTO: _of_connection(lambda entry: entry.original.proto),
    Field.CT_ORIGINAL_SADDR: _of_connection(lambda entry: entry.original.src),
    Field.CT_ORIGINAL_DADDR: _of_connection(lambda entry: entry.original.dst),
    Field.CT_ORIGINAL_SPORT: _of_connection(lambda entry: entry.original.sport),
    Field.CT_ORIGINAL_DPORT: _of_connection(lambda entry: entry.original.dport),
    Field.CT_REPLY_SADDR: _of_connection(lambda entry: entry.reply.src),
    Field.CT_REPLY_DADDR: _of_connection(lambda entry: entry.reply.dst),
    Field.CT_REPLY_SPORT: _of_connection(lambda entry: entry.reply.sport),
    Field.CT_REPLY_DPORT: _of_connection(lambda entry: entry.reply.dport),
    # the simulator has no helpers, so no connection is expected
    Field.CT_HELPER: lambda view: None,
    Field.CT_EXPIRES: _expires,
    Field.CT_PACKETS: _counted(_PACKETS, _BOTH),
    Field.CT_ORIGINAL_PACKETS: _counted(_PACKETS, (ORIGINAL,)),
    Field.CT_REPLY_PACKETS: _counted(_PACKETS, (REPLY,)),
    Field.CT_BYTES: _counted(_BYTES, _BOTH),
    Field.CT_ORIGINAL_BYTES: _counted(_BYTES, (ORIGINAL,)),
    Field.CT_REPLY_BYTES: _counted(_BYTES, (REPLY,)),
    Field.CT_AVERAGE: _average(_BOTH),
    Field.CT_ORIGINAL_AVERAGE: _average((ORIGINAL,)),
    Field.CT_REPLY_AVERAGE: _average((REPLY,)),
    Field.REVERSE_PATH: _reverse_path,
    Field.REVERSE_PATH_BY_MARK: _reverse_path_by_mark,
    Field.REVERSE_ROUTE: _reverse_route,
    Field.REVERSE_ROUTE_BY_MARK: _reverse_route_by_mark,
    Field.SOCKET: lambda view: int(view.skb.socket is not SocketKind.NONE),
    Field.SOCKET_UID: lambda view: view.skb.packet.uid if view.skb.socket is SocketKind.OPENED else None,
    Field.SOCKET_GID: lambda view: view.skb.packet.gid if view.skb.socket is SocketKind.OPENED else None,
    # the socket's cgroup has no class, as in replays on the kernel
    Field.SOCKET_CLASS: lambda view: None if view.skb.socket is SocketKind.NONE else 0,
    # the node has no listening sockets
    Field.TAKER: lambda view: 0,
    Field.TAKER_WILDCARD: lambda view: None,
    Field.TAKER_TRANSPARENT: lambda view: None,
    # the node has neither IPsec nor a bridge
    Field.IPSEC_IN: lambda view: 0,
    Field.IPSEC_OUT: lambda view: 0,
    Field.IPSEC_IN_STATES: lambda view: 0,
    Field.IPSEC_OUT_STATES: lambda view: 0,
    Field.BRIDGED: lambda view: 0,
    Field.BRIDGED_ON: lambda view: 0,
    Field.BRIDGE_PORT_IN: lambda view: "",
    Field.BRIDGE_PORT_OUT: lambda view: "",
    **{field: _of_clock(field) for field in CLOCKS},
    Field.FIB_SADDR_TYPE: lambda view: view.router.address_type(view.skb.packet.src),
    Field.FIB_DADDR_TYPE: lambda view: view.router.address_type(view.skb.packet.dst),
    Field.FIB_SADDR_TYPE_IIF: lambda view: view.router.address_type(view.skb.packet.src, view.iif or None),
    Field.FIB_DADDR_TYPE_IIF: lambda view: view.router.address_type(view.skb.packet.dst, view.iif or None),
    Field.FIB_SADDR_TYPE_OIF: lambda view: view.router.address_type(view.skb.packet.src, view.oif or None),
    Field.FIB_DADDR_TYPE_OIF: lambda view: view.router.address_type(view.skb.packet.dst, view.oif or None),
}
