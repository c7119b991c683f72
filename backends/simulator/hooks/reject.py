"""Answers of the node to refused packets: their conditions and their form.

Follows ``nf_send_unreach`` and ``nf_send_reset`` (nf_reject_ipv4.c), ``__icmp_send`` (icmp.c), and for IPv6
``nf_send_unreach6``, ``nf_send_reset6`` and ``icmp6_send``.
"""

from __future__ import annotations

from typing import Final

from backends.model.packet import Icmp6Type, IcmpType, Packet
from backends.simulator.conntrack.skb import Skb
from backends.simulator.conntrack.tuples import NR_ICMP_TYPES
from backends.simulator.routing.scopes import MAPPED
from translate.ir import REJECT_ICMP_CODES, Family, PacketType, Protocol, RejectKind, TcpFlag

__all__ = ["checksum_holds", "icmp_error", "no_error", "no_reset", "reset", "synack", "unreachable"]

_GRE, _ESP, _AH = 47, 50, 51
_OTHERWISE_SUMMED: Final = frozenset({_GRE, _ESP, _AH, Protocol.SCTP, Protocol.UDPLITE, Protocol.DCCP})

_NOT_ANSWERED: Final = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12})
"""ICMP types that count as errors, which get no answer (``icmp_pointers[].error``)."""

_TOS, _INTERNETWORK_CONTROL = 0x1E, 0xC0
"""The bits of TOS that an ICMP error copies from its packet, and its own precedence (``__icmp_send``)."""

_FOR_MANY: Final = "broadcasts and multicasts are not answered"
_NO_SENDER: Final = "its source is not the address of one node"


def unreachable(family: Family, kind: RejectKind) -> tuple[int, int]:
    """Return the ICMP type and code of a destination unreachable (``reject_tg``, ``reject_tg6``)."""
    message = IcmpType.DEST_UNREACHABLE if family is Family.IP else Icmp6Type.DEST_UNREACHABLE
    return message, REJECT_ICMP_CODES[family][kind]


def no_error(skb: Skb) -> str | None:
    """Return why no ICMP error is sent about a packet (``__icmp_send``); None if one may be sent."""
    packet = skb.packet
    assert skb.path is not None
    if not skb.path.answerable or (packet.dmac is not None and skb.type is not PacketType.UNICAST):
        return _FOR_MANY
    if packet.is_later_fragment and packet.family is Family.IP:
        return "later fragments are not answered"
    if not _is_no_error(packet):
        return "ICMP errors are not answered with ICMP errors"
    return None if _sender_is_one(packet) else _NO_SENDER


def _is_no_error(packet: Packet) -> bool:
    if packet.truncated and packet.proto in _ICMP:
        # The type, the first byte of the header, is enough.
        return bool(packet.payload) and _is_answered(packet.family, packet.payload[0])
    if packet.family is Family.IP6:
        # is_ineligible, which finds no ICMP in a later fragment
        return not packet.is_icmp or _is_answered(packet.family, packet.icmp_type or 0)
    return packet.proto != Protocol.ICMP or _is_answered(packet.family, packet.icmp_type or 0)


_ICMP: Final = (Protocol.ICMP, Protocol.ICMPV6)


def _is_answered(family: Family, icmp_type: int) -> bool:
    """Return whether an ICMP message of this type may get an ICMP error."""
    if family is Family.IP6:
        return icmp_type >= _FIRST_INFORMATION
    return icmp_type <= NR_ICMP_TYPES and icmp_type not in _NOT_ANSWERED


_FIRST_INFORMATION: Final = 128
"""The first type of ICMPv6 that is no error (``ICMPV6_INFOMSG_MASK``)."""


def _sender_is_one(packet: Packet) -> bool:
    """Return whether the source names one node, which IPv6 requires for an answer (RFC 4443, 2.4)."""
    return packet.family is Family.IP or (packet.src != 0 and packet.src >> 120 != 0xFF)


def icmp_error(packet: Packet, icmp_type: int, code: int, source: int) -> Packet:
    """Return the ICMP error from ``source`` to the source of ``packet`` (``__icmp_send``, ``icmp6_send``)."""
    four = packet.family is Family.IP
    return Packet(
        family=packet.family,
        src=source,
        dst=packet.src,
        proto=Protocol.ICMP if four else Protocol.ICMPV6,
        icmp_type=icmp_type,
        icmp_code=code,
        quoted=packet,
        tos=packet.tos & _TOS | _INTERNETWORK_CONTROL if four else 0,
        time=packet.time,
        cpu=packet.cpu,
    )


def checksum_holds(packet: Packet) -> bool:
    """Return whether ``nf_send_unreach`` accepts the packet's checksum and so answers.

    It does not answer later fragments, and the checksum of a first fragment is that of the whole packet. The
    bytes of a truncated packet are summed as if they were whole.

    For unknown protocols it requires that all bytes of the payload sum to a valid checksum
    (``nf_ip_checksum``), which they almost never do. A few protocols are exempt (``nf_reject_verify_csum``).
    """
    icmp = Protocol.ICMP if packet.family is Family.IP else Protocol.ICMPV6
    if packet.is_later_fragment:
        return False
    if packet.proto in (Protocol.TCP, Protocol.UDP, icmp) and not packet.truncated:
        return not packet.bad_checksum and packet.fragment is None
    if packet.proto in _OTHERWISE_SUMMED:
        return True
    if packet.family is Family.IP6:
        return _summed_with_addresses(packet)
    padded = packet.payload + bytes(len(packet.payload) % 2)
    pseudo = 0
    if packet.proto in (Protocol.TCP, Protocol.UDP):  # truncated
        pseudo = packet.src + packet.dst + packet.proto + len(packet.payload)
    return (pseudo + int.from_bytes(padded, "big")) % 0xFFFF == 0


def _summed_with_addresses(packet: Packet) -> bool:
    """Return whether ``nf_ip6_checksum`` accepts the payload; it adds the addresses for every protocol."""
    if not packet.payload:
        return False
    padded = packet.payload + bytes(len(packet.payload) % 2)
    pseudo = packet.src + packet.dst + packet.proto + len(packet.payload)
    return (pseudo + int.from_bytes(padded, "big")) % 0xFFFF == 0


def no_reset(skb: Skb) -> str | None:
    """Return why no RST is sent about a packet (``nf_send_reset``); None if one is sent."""
    assert skb.path is not None
    if not _may_be_reset(skb.packet):
        return "it is not a TCP segment that may be reset"
    if not skb.path.answerable:
        return _FOR_MANY
    return None if _sender_is_one(skb.packet) else _NO_SENDER


def _may_be_reset(packet: Packet) -> bool:
    """Return whether the packet is a segment that gets a RST (``nf_reject_ip_tcphdr_get``).

    Over IPv6 none is sent if an address is IPv4-mapped: ``nf_send_reset6`` requires unicast addresses, and
    ``ipv6_addr_type`` does not classify such an address as unicast.
    """
    if packet.family is Family.IP6 and (packet.src in MAPPED or packet.dst in MAPPED):
        return False
    summed = not packet.bad_checksum and packet.fragment is None and not packet.truncated
    return packet.proto == Protocol.TCP and not packet.flags & TcpFlag.RST and summed


def synack(packet: Packet) -> Packet:
    """Return the SYN with ACK that a node sends in place of the server (``synproxy_send_client_synack``)."""
    return _segment(packet, TcpFlag.SYN | TcpFlag.ACK, seq=0, ack=(packet.seq + 1) & 0xFFFFFFFF)


def reset(packet: Packet) -> Packet:
    """Return the RST that answers a segment (``nf_reject_ip_tcphdr_put``)."""
    phantom = bool(packet.flags & TcpFlag.SYN) + bool(packet.flags & TcpFlag.FIN)
    if packet.flags & TcpFlag.ACK:
        return _segment(packet, TcpFlag.RST, seq=packet.ack, ack=0)
    ack = (packet.seq + phantom + len(packet.payload)) & 0xFFFFFFFF
    return _segment(packet, TcpFlag.RST | TcpFlag.ACK, seq=0, ack=ack)


def _segment(packet: Packet, flags: TcpFlag, *, seq: int, ack: int) -> Packet:
    """Return a segment without data to the sender of ``packet``."""
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
        time=packet.time,
        cpu=packet.cpu,
    )
