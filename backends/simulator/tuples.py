"""Tuples: how a packet is named in the connection table, and how NAT rewrites it."""

from __future__ import annotations

from backends.packet import Packet, Tuple
from translate.ir import Protocol

__all__ = [
    "ICMP6_REDIRECT",
    "ICMP6_REQUESTS",
    "ICMP6_UNTRACKED",
    "ICMP_ERRORS",
    "ICMP_REQUESTS",
    "NR_ICMP_TYPES",
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

ICMP6_UNTRACKED = frozenset({130, 131, 132, 133, 134, 135, 136, 143})
"""ICMPv6 types that conntrack leaves alone (``noct_valid_new``): listener and neighbour discovery."""

ICMP6_REQUESTS = frozenset({128, 139})
"""ICMPv6 types that can begin a connection (``nf_conntrack_icmpv6_packet``)."""

ICMP6_REDIRECT = 137

_INVERSE = {8: 0, 0: 8, 13: 14, 14: 13, 15: 16, 16: 15, 17: 18, 18: 17}
_QUERIES = frozenset(_INVERSE)
_INVERSE_6 = {128: 129, 129: 128, 139: 140, 140: 139}
_ECHOES_6 = frozenset({128, 129})
_ICMP = frozenset({Protocol.ICMP, Protocol.ICMPV6})


def tuple_of(packet: Packet) -> Tuple:
    """Return a packet's tuple (``nf_ct_get_tuple``); protocols without ports have zeroes."""
    if packet.is_icmp:
        kind = (packet.icmp_type or 0) << 8 | (packet.icmp_code or 0)
        return Tuple(packet.src, packet.dst, packet.proto, packet.icmp_id or 0, kind)
    if packet.has_ports:
        assert packet.sport is not None
        assert packet.dport is not None
        return Tuple(packet.src, packet.dst, packet.proto, packet.sport, packet.dport)
    return Tuple(packet.src, packet.dst, packet.proto, 0, 0)


def invert(t: Tuple) -> Tuple | None:
    """Return the tuple of an answer (``nf_ct_invert_tuple``); None for ICMP that has no answer."""
    src, dst, proto, sport, dport = t
    if proto in _ICMP:
        return _invert_icmp(t)
    # A named tuple's own constructor is written in Python, and this is asked at every hook.
    return tuple.__new__(Tuple, (dst, src, proto, dport, sport))


def _invert_icmp(t: Tuple) -> Tuple | None:
    assert isinstance(t.dport, int)
    answer = (_INVERSE if t.proto == Protocol.ICMP else _INVERSE_6).get(t.dport >> 8)
    if answer is None:
        return None
    return Tuple(t.dst, t.src, t.proto, t.sport, answer << 8 | (t.dport & 0xFF))


def rewrite_source(packet: Packet, target: Tuple) -> Packet:
    """Return the packet with the source that ``target`` has (``nf_nat_ipv4_manip_pkt``)."""
    if packet.has_ports:
        return packet.changed(src=target.src, sport=target.sport)
    return packet.changed(src=target.src, **_identifier(packet, target))


def rewrite_destination(packet: Packet, target: Tuple) -> Packet:
    """Return the packet with the destination that ``target`` has (``nf_nat_ipv4_manip_pkt``)."""
    if packet.has_ports:
        return packet.changed(dst=target.dst, dport=target.dport)
    return packet.changed(dst=target.dst, **_identifier(packet, target))


def _identifier(packet: Packet, target: Tuple) -> dict[str, object]:
    """``icmp_manip_pkt``: queries have one identifier, whichever side is rewritten."""
    queries = _QUERIES if packet.proto == Protocol.ICMP else _ECHOES_6
    if packet.is_icmp and packet.icmp_type in queries and target.sport != (packet.icmp_id or 0):
        return {"icmp_id": target.sport}
    return {}
