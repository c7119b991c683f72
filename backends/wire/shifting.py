"""Packets of several runs of one flow at the same time: each run has a source port and numbers of its own.

A run is given as the packets that it would have alone. Where these have the flow's source port, the run's own
port is sent, and its number is added to the sequence and acknowledgement numbers of TCP, or to the tag with
which the payload of UDP begins. So conntrack keeps the runs apart, and a packet that comes out is recognised
after its source port was changed. Checksums change by the same amount: a wrong one stays wrong.
"""

from __future__ import annotations

import struct
from typing import Final

from backends.wire.plainheaders import transport_header
from translate.dataclass import dataclass
from translate.ir import Protocol

__all__ = ["Shift", "key"]

_TCP, _UDP = int(Protocol.TCP), int(Protocol.UDP)
_TCP_HEADER: Final = struct.Struct("!HHIIBBHH")
_UDP_HEADER: Final = struct.Struct("!HHHHIHH")
"""Ports, length, checksum, and the tag: a fixed part, a word that gets the run's number, and the packet's."""
_ACK: Final = 0x10


def key(data: bytes) -> bytes | None:
    """Return what tells a TCP or UDP packet from those of other runs, and survives NAT: a part of its bytes.

    None for another packet, and if it has IP options or extension headers, or is a fragment.
    """
    place = _start(data)
    if place is None:
        return None
    proto, start = place
    return data[start + 4 : start + 8] if proto == _TCP else data[start + 8 : start + 16]


@dataclass(frozen=True, slots=True)
class Shift:
    """Changes packets of one run: ``port`` is its own source port, ``number`` its number, below 2 ** 16.

    ``base`` is the flow's source port.
    """

    base: int
    port: int
    number: int

    def sent(self, data: bytes, *, reply: bool) -> bytes | None:
        """Return a packet of the run as it is sent; None if :func:`key` would return None.

        ``reply``: it goes to the client, whose port is its destination port.
        """
        return _shifted(data, self.base, self.port, self.number, reply)

    def received(self, data: bytes, *, reply: bool) -> bytes | None:
        """Return a packet that came out as it would be if the run were alone.

        None also if its port of the client is the flow's by chance, because NAT chose that port.
        """
        if self.port != self.base and _client_port(data, reply) == self.base:
            return None
        return _shifted(data, self.port, self.base, -self.number, reply)


def _start(data: bytes) -> tuple[int, int] | None:
    """Return the protocol of a packet with a key, and the place of its transport header."""
    header = transport_header(data)
    if header is None or (header[0] == _UDP and len(data) < header[1] + _UDP_HEADER.size):
        return None
    return header


def _client_port(data: bytes, reply: bool) -> int | None:
    place = _start(data)
    if place is None:
        return None
    at = place[1] + 2 * reply
    return int.from_bytes(data[at : at + 2], "big")


def _shifted(data: bytes, before: int, after: int, number: int, reply: bool) -> bytes | None:
    place = _start(data)
    if place is None:
        return None
    proto, start = place
    if proto == _TCP:
        sport, dport, seq, ack, offset, flags, window, checksum = _TCP_HEADER.unpack_from(data, start)
        new_seq = (seq + number) & 0xFFFFFFFF
        new_ack = (ack + number) & 0xFFFFFFFF if flags & _ACK else ack
        more = seq + ack - new_seq - new_ack  # 2 ** 16 is 1 in this arithmetic (RFC 1071)
    else:
        sport, dport, length, checksum, fixed, word, count = _UDP_HEADER.unpack_from(data, start)
        new_word = (word + number) & 0xFFFF
        more = word - new_word
    new_sport = after if sport == before and not reply else sport
    new_dport = after if dport == before and reply else dport
    total = checksum + more + sport + dport - new_sport - new_dport
    if proto == _TCP:
        header = _TCP_HEADER.pack(
            new_sport, new_dport, new_seq, new_ack, offset, flags, window, total % 0xFFFF
        )
        return data[:start] + header + data[start + 18 :]
    if checksum:  # 0 means no checksum (RFC 768)
        checksum = total % 0xFFFF or 0xFFFF
    header = _UDP_HEADER.pack(new_sport, new_dport, length, checksum, fixed, new_word, count)
    return data[:start] + header + data[start + 16 :]
