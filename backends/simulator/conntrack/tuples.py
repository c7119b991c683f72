"""Tuples, the keys of packets in the connection table, and the rewriting of packets by NAT."""

from __future__ import annotations

from typing import Final

from backends.model.leading import leading_ports
from backends.model.packet import GRE, NO_NEXT_HEADER, Packet, Port, Tuple
from translate.dataclass import replace
from translate.ir import Family, Protocol

__all__ = [
    "ICMP6_REDIRECT",
    "ICMP6_REQUESTS",
    "ICMP6_UNTRACKED",
    "ICMP_ERRORS",
    "ICMP_REQUESTS",
    "NR_ICMP_TYPES",
    "can_be_rewritten",
    "invert",
    "rewrite_destination",
    "rewrite_source",
    "tuple_of",
]

NR_ICMP_TYPES = 18
ICMP_ERRORS = frozenset({3, 4, 5, 11, 12})
"""ICMP types that quote a packet (``icmp_is_err``)."""

ICMP_REQUESTS = frozenset({8, 13, 15, 17})
"""ICMP types that can begin a connection (``nf_conntrack_icmp_packet``)."""

ICMP6_UNTRACKED = frozenset({130, 131, 132, 133, 134, 135, 136, 143, 151, 152})
"""ICMPv6 types that conntrack leaves alone (``noct_valid_new``): listener and neighbour discovery.

Multicast router discovery (151, 152) is among them since Linux 6.12; before, it was INVALID.
"""

ICMP6_REQUESTS = frozenset({128, 139})
"""ICMPv6 types that can begin a connection (``nf_conntrack_icmpv6_packet``)."""

ICMP6_REDIRECT = 137

_INVERSE = {8: 0, 0: 8, 13: 14, 14: 13, 15: 16, 16: 15, 17: 18, 18: 17}
_QUERIES = frozenset(_INVERSE)
_INVERSE_6 = {128: 129, 129: 128, 139: 140, 140: 139}
_ECHOES_6 = frozenset({128, 129})
_ICMP = frozenset({Protocol.ICMP, Protocol.ICMPV6})

_GRE_HEADER: Final = 8
_GRE_ENHANCED: Final = 1
_GRE_PPP: Final = 0x880B


def tuple_of(packet: Packet) -> Tuple | None:
    """Return a packet's tuple (``nf_ct_get_tuple``); protocols without ports have zeroes.

    None for a packet in which conntrack finds no tuple.
    """
    if packet.truncated:
        return _truncated_tuple(packet)
    if packet.is_icmp:
        type_and_code = (packet.icmp_type or 0) << 8 | (packet.icmp_code or 0)
        return Tuple(packet.src, packet.dst, packet.proto, packet.icmp_id or 0, type_and_code)
    if packet.has_ports:
        assert packet.sport is not None
        assert packet.dport is not None
        return Tuple(packet.src, packet.dst, packet.proto, packet.sport, packet.dport)
    if packet.proto == GRE:
        return _gre_tuple(packet)
    if packet.family is Family.IP6 and packet.proto == NO_NEXT_HEADER:
        return None  # ipv6_skip_exthdr
    return Tuple(packet.src, packet.dst, packet.proto, 0, 0)


def _truncated_tuple(packet: Packet) -> Tuple | None:
    """Return the tuple of a packet that ends within its header (``nf_ct_get_tuple_ports``)."""
    ports = leading_ports(packet)
    return None if ports is None else Tuple(packet.src, packet.dst, packet.proto, *ports)


def gre_version(packet: Packet) -> int:
    """Return the version in a GRE packet's header (RFC 2784, 2)."""
    return packet.payload[1] & 7


def _gre_tuple(packet: Packet) -> Tuple | None:
    """Return the tuple of GRE (``gre_pkt_to_tuple``): only enhanced GRE (RFC 2637) has a key."""
    key = 0
    if len(packet.payload) >= _GRE_HEADER and gre_version(packet) == _GRE_ENHANCED:
        if int.from_bytes(packet.payload[2:4], "big") != _GRE_PPP:
            return None
        key = int.from_bytes(packet.payload[6:8], "big")
    return Tuple(packet.src, packet.dst, packet.proto, 0, key)


def invert(t: Tuple) -> Tuple | None:
    """Return the tuple of an answer (``nf_ct_invert_tuple``); None for ICMP without an answer."""
    src, dst, proto, sport, dport = t
    if proto in _ICMP:
        return _invert_icmp(t)
    # A named tuple's constructor is slow Python, and this is called at every hook.
    return tuple.__new__(Tuple, (dst, src, proto, dport, sport))


def _invert_icmp(t: Tuple) -> Tuple | None:
    assert isinstance(t.dport, int)
    answer = (_INVERSE if t.proto == Protocol.ICMP else _INVERSE_6).get(t.dport >> 8)
    if answer is None:
        return None
    return Tuple(t.dst, t.src, t.proto, t.sport, answer << 8 | (t.dport & 0xFF))


def can_be_rewritten(packet: Packet, *, source: bool) -> bool:
    """Return whether NAT can rewrite the packet (``gre_manip_pkt``); it drops others."""
    if packet.proto != GRE:
        return True
    if len(packet.payload) < _GRE_HEADER:
        return False
    return source or gre_version(packet) <= _GRE_ENHANCED


def rewrite_source(packet: Packet, target: Tuple) -> Packet:
    """Return the packet with the source of ``target`` (``nf_nat_ipv4_manip_pkt``)."""
    if packet.has_ports:
        return replace(packet, src=target.src, sport=target.sport)
    return replace(packet, src=target.src, icmp_id=_identifier(packet, target))


def rewrite_destination(packet: Packet, target: Tuple) -> Packet:
    """Return the packet with the destination of ``target`` (``nf_nat_ipv4_manip_pkt``)."""
    if packet.has_ports:
        return replace(packet, dst=target.dst, dport=target.dport)
    return replace(packet, dst=target.dst, icmp_id=_identifier(packet, target))


def _identifier(packet: Packet, target: Tuple) -> Port | None:
    """Return the identifier of the rewritten packet (``icmp_manip_pkt``), the same for both directions."""
    queries = _QUERIES if packet.proto == Protocol.ICMP else _ECHOES_6
    if packet.is_icmp and packet.icmp_type in queries and target.sport != (packet.icmp_id or 0):
        return target.sport
    return packet.icmp_id
