"""What the node answers when it refuses a packet: which packets get an answer, and which answer.

``nf_send_unreach`` and ``nf_send_reset`` (nf_reject_ipv4.c), ``__icmp_send`` (icmp.c).
"""

from __future__ import annotations

from typing import Final

from backends.packet import Packet
from backends.simulator.tuples import NR_ICMP_TYPES
from translate.ir import Protocol, RejectKind, TcpFlag

__all__ = ["UNREACHABLE_CODES", "checksum_holds", "icmp_due", "reset", "reset_due"]

UNREACHABLE_CODES: Final = {
    RejectKind.ICMP_NET_UNREACHABLE: 0,
    RejectKind.ICMP_HOST_UNREACHABLE: 1,
    RejectKind.ICMP_PROTO_UNREACHABLE: 2,
    RejectKind.ICMP_PORT_UNREACHABLE: 3,
    RejectKind.ICMP_NET_PROHIBITED: 9,
    RejectKind.ICMP_HOST_PROHIBITED: 10,
    RejectKind.ICMP_ADMIN_PROHIBITED: 13,
}
"""The ICMP code of each kind of destination unreachable (``reject_tg``)."""


_GRE, _ESP, _AH = 47, 50, 51
_OTHERWISE_SUMMED: Final = frozenset({_GRE, _ESP, _AH, Protocol.SCTP, Protocol.UDPLITE, Protocol.DCCP})

_NOT_ANSWERED: Final = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12})
"""ICMP types that count as errors when it comes to answering (``icmp_pointers[].error``)."""


def icmp_due(packet: Packet) -> bool:
    """Return whether an ICMP error may be sent about a packet (``__icmp_send``): not about one."""
    if packet.proto != Protocol.ICMP:
        return True
    kind = packet.icmp_type or 0
    return kind <= NR_ICMP_TYPES and kind not in _NOT_ANSWERED


def checksum_holds(packet: Packet) -> bool:
    """Return whether ``nf_send_unreach`` finds the packet's checksum right, and so answers.

    It looks at protocols that it knows nothing about as if all their bytes summed to a checksum
    (``nf_ip_checksum``), which they hardly ever do; few are exempt (``nf_reject_verify_csum``).
    """
    if packet.proto in (Protocol.TCP, Protocol.UDP, Protocol.ICMP):
        return not packet.bad_checksum
    if packet.proto in _OTHERWISE_SUMMED:
        return True
    padded = packet.payload + bytes(len(packet.payload) % 2)
    return int.from_bytes(padded, "big") % 0xFFFF == 0


def reset_due(packet: Packet) -> bool:
    """Return whether a RST is sent about a packet (``nf_reject_ip_tcphdr_get``)."""
    return packet.proto == Protocol.TCP and not packet.flags & TcpFlag.RST and not packet.bad_checksum


def reset(packet: Packet) -> Packet:
    """Return the RST that answers a segment (``nf_reject_ip_tcphdr_put``)."""
    phantom = bool(packet.flags & TcpFlag.SYN) + bool(packet.flags & TcpFlag.FIN)
    if packet.flags & TcpFlag.ACK:
        flags, seq, ack = TcpFlag.RST, packet.ack, 0
    else:
        flags, seq = TcpFlag.RST | TcpFlag.ACK, 0
        ack = (packet.seq + phantom + len(packet.payload)) & 0xFFFFFFFF
    return Packet(
        family=packet.family,
        src=packet.dst,
        dst=packet.src,
        proto=packet.proto,
        sport=packet.dport,
        dport=packet.sport,
        flags=flags,
        seq=seq,
        ack=ack,
    )
