"""The bytes of a packet at a hook, from its IP header on, and which of them are known.

These bytes are not known:

* bytes that the kernel chooses: the identification of IPv4 in a packet of the node, and a port picked by NAT;
* all bytes after the IP header of a packet that the kernel makes itself;
* a checksum for which two values mean the same, and one that its sender computed wrongly;
* the quoted packet of an ICMP error;
* the TCP header of a segment whose options a rule has removed, and the bytes after it.
"""

from __future__ import annotations

from typing import Final

from backends.model.packet import FRAGMENT_SIZE, PortClass
from backends.simulator.conntrack.skb import Skb, SocketKind
from backends.wire.frames import build
from translate.dataclass import dataclass
from translate.ir import Family, Protocol

__all__ = ["Contents", "contents"]

_HEADER: Final = {Family.IP: 20, Family.IP6: 40}
_EITHER: Final = (b"\0\0", b"\xff\xff")
"""The two values of a checksum of ones' complement that mean the same."""
_CHECKSUMS: Final[dict[int, int]] = {
    Protocol.TCP: 16,
    Protocol.UDP: 6,
    Protocol.UDPLITE: 6,
    Protocol.ICMP: 2,
    Protocol.ICMPV6: 2,
}
"""The offset of each protocol's checksum in its header."""
_ICMP_HEADER: Final = 8
_MSS_LENGTH: Final = 4


@dataclass(frozen=True, slots=True)
class Contents:
    """The bytes of a packet; ``known`` has 0xFF for each byte that is known, and 0 for any other."""

    data: bytes
    known: bytes


def contents(skb: Skb) -> Contents:
    """Return the bytes of a packet at a hook."""
    packet = skb.packet
    data = build(packet)
    known = bytearray(b"\xff" * len(data))
    start = _HEADER[packet.family]
    if packet.family is Family.IP:
        if not skb.link:
            known[4:6] = known[10:12] = bytes(2)
        elif data[10:12] in _EITHER:
            known[10:12] = bytes(2)
    else:
        start += sum(8 * (units + 1) for units in packet.option_headers if units is not None)
        start += 0 if packet.routing is None else packet.routing.size
        start += 0 if packet.fragment is None else FRAGMENT_SIZE
    if packet.is_headless:
        return Contents(data, bytes(known))
    if skb.socket is SocketKind.KERNEL:
        known[start:] = bytes(len(data) - start)
    if skb.stripped:
        # the options are padding now, and the segment has its old length
        data, known = data + bytes(_MSS_LENGTH), known + bytes(_MSS_LENGTH)
        known[start:] = bytes(len(data) - start)
    picked = [place for place, port in ((0, packet.sport), (2, packet.dport)) if isinstance(port, PortClass)]
    for place in picked:
        known[start + place : start + place + 2] = bytes(2)
    if packet.is_icmp and isinstance(packet.icmp_id, PortClass):
        picked.append(4)
        known[start + 4 : start + 6] = bytes(2)
    if packet.quoted is not None:
        known[start + _ICMP_HEADER :] = bytes(len(data) - start - _ICMP_HEADER)
    if packet.proto == Protocol.SCTP and (picked or packet.bad_checksum):
        known[start + 8 : start + 12] = bytes(4)
    at = _CHECKSUMS.get(packet.proto)
    if at is not None:
        checksum = slice(start + at, start + at + 2)
        unsure = picked or packet.bad_checksum or packet.quoted is not None or not skb.link
        if unsure or data[checksum] in _EITHER:
            known[checksum] = bytes(2)
    return Contents(data, bytes(known[: len(data)]))
