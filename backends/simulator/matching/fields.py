"""Functions that read a field of a packet at a hook."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from backends.model.clock import clock_value
from backends.model.leading import leading_ports, security_index
from backends.model.link import eui64, neighbour_mac
from backends.model.packet import Packet
from backends.simulator.conntrack.connection import ORIGINAL, REPLY
from backends.simulator.conntrack.skb import SocketKind
from backends.simulator.matching.connections import (
    BOTH,
    BYTES,
    PACKETS,
    average,
    counted,
    expires,
    of_connection,
)
from backends.simulator.matching.ipv6headers import (
    ROUTING_LAST_ENTRY,
    fragment_part,
    mobility_byte,
    routing_bytes,
    routing_in_order,
    routing_part,
)
from backends.simulator.matching.view import HotDrop, Reader, Value, View
from translate.ir import CLOCKS, INDEX_PROTOCOLS, IPSEC_STATES, Field, Protocol, TcpFlag

__all__ = ["port_reader", "reader"]

_MSS_KIND: Final = 2
"""The number of the TCP option with the MSS (RFC 9293)."""
_MSS_LENGTH: Final = 4


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


def _sctp_chunks(view: View) -> Value:
    """Return the kinds of a packet's chunks; each SCTP packet of a corpus has one chunk, a heartbeat."""
    packet = view.skb.packet
    if packet.is_headless:
        return _absent(packet)
    return 1 << _HEARTBEAT if packet.proto == Protocol.SCTP else None


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
    Field.ROUTING_TYPE: routing_part(0),
    Field.ROUTING_LEFT: routing_part(1),
    Field.ROUTING_LENGTH: routing_part(2),
    Field.ROUTING_NEXT: routing_bytes(0, 1),
    Field.ROUTING_LAST: ROUTING_LAST_ENTRY,
    Field.ROUTING_FLAGS: routing_bytes(5, 1),
    Field.ROUTING_TAG: routing_bytes(6, 2),
    Field.ROUTING_IN_ORDER: routing_in_order,
    Field.ROUTING_FIRST_ADDRESS: routing_bytes(8, 16),
    Field.ROUTING_SECOND_ADDRESS: routing_bytes(24, 16),
    Field.HOP_LENGTH: attrgetter("skb.packet.hop_options"),
    Field.DESTINATION_LENGTH: attrgetter("skb.packet.destination_options"),
    Field.FRAGMENT_ID: fragment_part(lambda fragment: fragment.id or 0),
    Field.FRAGMENT_OFFSET: fragment_part(lambda fragment: fragment.offset),
    Field.FRAGMENT_MORE: fragment_part(lambda fragment: int(fragment.more)),
    Field.FRAGMENT_RESERVED: fragment_part(lambda fragment: fragment.reserved),
    Field.FRAGMENT_RESERVED2: fragment_part(lambda fragment: 0),
    Field.MH_TYPE: mobility_byte(2),
    Field.MH_NEXT: mobility_byte(0),
    # a corpus has no packets of IPv6 with AH
    Field.AH_LENGTH: lambda view: None,
    Field.AH_RESERVED: lambda view: None,
    # a corpus has no packets of DCCP
    Field.DCCP_TYPE: lambda view: None,
    Field.DCCP_OPTIONS: lambda view: None,
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
    Field.CT_STATUS: of_connection(lambda entry: entry.status),
    Field.CT_MARK: of_connection(lambda entry: entry.mark),
    Field.CT_DIRECTION: lambda view: None if view.skb.entry is None else view.skb.direction,
    Field.CT_PROTO: of_connection(lambda entry: entry.original.proto),
    Field.CT_ORIGINAL_SADDR: of_connection(lambda entry: entry.original.src),
    Field.CT_ORIGINAL_DADDR: of_connection(lambda entry: entry.original.dst),
    Field.CT_ORIGINAL_SPORT: of_connection(lambda entry: entry.original.sport),
    Field.CT_ORIGINAL_DPORT: of_connection(lambda entry: entry.original.dport),
    Field.CT_REPLY_SADDR: of_connection(lambda entry: entry.reply.src),
    Field.CT_REPLY_DADDR: of_connection(lambda entry: entry.reply.dst),
    Field.CT_REPLY_SPORT: of_connection(lambda entry: entry.reply.sport),
    Field.CT_REPLY_DPORT: of_connection(lambda entry: entry.reply.dport),
    # the simulator has no helpers, so no connection is expected
    Field.CT_HELPER: lambda view: None,
    Field.CT_EXPIRES: expires,
    Field.CT_PACKETS: counted(PACKETS, BOTH),
    Field.CT_ORIGINAL_PACKETS: counted(PACKETS, (ORIGINAL,)),
    Field.CT_REPLY_PACKETS: counted(PACKETS, (REPLY,)),
    Field.CT_BYTES: counted(BYTES, BOTH),
    Field.CT_ORIGINAL_BYTES: counted(BYTES, (ORIGINAL,)),
    Field.CT_REPLY_BYTES: counted(BYTES, (REPLY,)),
    Field.CT_AVERAGE: average(BOTH),
    Field.CT_ORIGINAL_AVERAGE: average((ORIGINAL,)),
    Field.CT_REPLY_AVERAGE: average((REPLY,)),
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
    **{field: lambda view: None for field in IPSEC_STATES},
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
