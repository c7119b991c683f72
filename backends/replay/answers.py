"""Answers to a sent packet: a rejection by a rule, or the stack's answer to a delivered packet."""

from __future__ import annotations

from typing import Final

from backends.model.outcome import SYN_ACK
from backends.model.packet import Icmp6Type, IcmpType, Packet
from backends.wire.frames import Identity, identity
from translate.ir import REJECT_ICMP_CODES, Family, Protocol, RejectKind, TcpFlag

__all__ = ["is_stack_answer", "rejection_by", "rejects_reset"]

_REJECT_KINDS: Final = {
    family: {code: kind for kind, code in codes.items()} for family, codes in REJECT_ICMP_CODES.items()
}
_UNWANTED_6: Final = frozenset({(Icmp6Type.DEST_UNREACHABLE, 4), (Icmp6Type.PARAMETER_PROBLEM, 1)})
"""ICMPv6 types and codes of answers for a port or protocol without a listener on the node."""
_TIMESTAMPS: Final = (Protocol.ICMP, IcmpType.TIMESTAMP, IcmpType.TIMESTAMP_REPLY)


def rejection_by(sent: Packet, wanted: Identity, answer: Packet) -> str | None:
    """Return how ``answer`` rejects ``sent``, or None if it does not."""
    if answer.is_icmp and answer.quoted is not None:
        if sent.quoted is not None or identity(answer.quoted) != wanted:
            return None
        six = answer.family is Family.IP6
        if answer.icmp_type == (Icmp6Type.DEST_UNREACHABLE if six else IcmpType.DEST_UNREACHABLE):
            kind = _REJECT_KINDS[answer.family].get(answer.icmp_code or 0)
            if kind is not None:
                return kind.value
        if six:
            return f"icmp6-{answer.icmp_type}-{answer.icmp_code}"
        if answer.icmp_type == IcmpType.REDIRECT:
            return None
        return f"icmp-{answer.icmp_type}-{answer.icmp_code}"
    if sent.proto == Protocol.TCP and not sent.is_headless and _resets(sent, answer):
        return RejectKind.TCP_RESET.value
    return SYN_ACK if _opens(sent, answer) else None


def _opens(sent: Packet, answer: Packet) -> bool:
    """Return whether ``answer`` is the SYN with ACK that answers ``sent``."""
    both = TcpFlag.SYN | TcpFlag.ACK
    return (
        sent.proto == answer.proto == Protocol.TCP
        and sent.flags & both == TcpFlag.SYN
        and answer.flags & both == both
        and (answer.dport, answer.ack) == (sent.sport, (sent.seq + 1) & 0xFFFFFFFF)
    )


def _resets(sent: Packet, answer: Packet) -> bool:
    """Return whether ``answer`` is the RST that answers ``sent`` (RFC 9293, 3.10.7.1)."""
    if answer.proto != Protocol.TCP or not answer.flags & TcpFlag.RST or answer.dport != sent.sport:
        return False
    if sent.flags & TcpFlag.ACK:
        return answer.seq == sent.ack
    phantom = bool(sent.flags & TcpFlag.SYN) + bool(sent.flags & TcpFlag.FIN)
    return answer.ack == (sent.seq + len(sent.payload) + phantom) & 0xFFFFFFFF


def rejects_reset(sent: Packet, answer: Packet) -> bool:
    """Return whether ``answer`` rejects the RST that REJECT sent for ``sent``, as a rule in OUTPUT may do."""
    return answer.is_icmp and answer.quoted is not None and _resets(sent, answer.quoted)


def is_stack_answer(sent: Packet, answer: Packet) -> bool:
    """Return whether ``answer`` is the stack's answer to a delivered packet without a listener."""
    if answer.is_icmp and answer.quoted is not None:
        unwanted = answer.icmp_type == IcmpType.DEST_UNREACHABLE and answer.icmp_code in (2, 3)
        if answer.family is Family.IP6:
            unwanted = (answer.icmp_type, answer.icmp_code) in _UNWANTED_6
        return unwanted and sent.quoted is None and identity(answer.quoted) == identity(sent)
    if (sent.proto, sent.icmp_type, answer.icmp_type) == _TIMESTAMPS:
        return (answer.src, answer.dst) == (sent.dst, sent.src)  # no sysctl turns these off
    return sent.proto == Protocol.TCP and _resets(sent, answer)
