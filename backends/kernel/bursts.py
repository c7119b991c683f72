"""Many flows at once: first packets of UDP, all sent before what came of them is read.

Most flows of a big corpus are one datagram that leaves the node, and most of what it costs to replay
one is asking again and again whether anything has come. Here a burst is written and then read until
all is quiet. Only what cannot be mistaken counts: a datagram that left once, or was delivered once,
whole, with right checksums, its mark and its source port, and about which nothing else was heard. Of
all other flows nothing is said, and :class:`~backends.kernel.replayer.Replayer` sends them again, one
by one, after the node has forgotten all connections.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from backends.flow import Flow, Send
from backends.kernel.checksums import ones_sum
from backends.kernel.frames import build
from backends.kernel.tapnode import Sighting, TapNode
from backends.outcome import Outcome, Verdict
from backends.packet import Packet
from translate.ir import Family, Protocol

__all__ = ["BURST", "fits", "send_burst"]

BURST: Final = 64
"""How many flows are sent at once: far fewer than the smallest of the sockets' buffers holds."""

_TAG: Final = struct.Struct("!II")
_MAGIC: Final = 0x6E667062
_FOUR: Final = struct.Struct("!BBHHHBBHIIHHHH")
_SIX: Final = struct.Struct("!IHBBQQQQHHHH")


def fits(flow: Flow, family: Family) -> bool:
    """Whether a flow is of the kind that can be sent in a burst."""
    if len(flow.steps) != 1:
        return False
    step = flow.steps[0]
    if not isinstance(step, Send) or step.entry is None:
        return False
    packet = step.packet
    return (
        packet.proto == Protocol.UDP
        and packet.family is family
        and not packet.payload
        and not packet.bad_checksum
        and isinstance(packet.sport, int)
        and isinstance(packet.dport, int)
    )


def send_burst(tap: TapNode, flows: Sequence[Flow]) -> list[Outcome | None]:
    """Send the first packets of flows that fit and return what became of each.

    That is its outcome, or None where that is not certain. The flows must not meet: no source port is a
    port of a flow before. Raises KeyError for an
    interface that the node does not have.
    """
    for number, flow in enumerate(flows):
        first = flow.first
        assert first.entry is not None
        tap.inject(first.entry, build(first.packet.changed(payload=_TAG.pack(_MAGIC, number))))
    found: list[Outcome | None] = [None] * len(flows)
    heard = [0] * len(flows)
    for sighting in tap.drain(at_most=BURST):
        whose = _number(sighting.data)
        if whose is None or whose >= len(flows):
            return [None] * len(flows)  # only sending one by one can tell
        heard[whose] += 1
        found[whose] = _outcome(flows[whose].first.packet, sighting)
    return [outcome if count == 1 else None for outcome, count in zip(found, heard, strict=True)]


def _number(data: bytes) -> int | None:
    """Which packet of the burst this is, or quotes."""
    if len(data) < 8:
        return None
    magic, number = _TAG.unpack_from(data, len(data) - 8)
    return number if magic == _MAGIC else None


def _outcome(sent: Packet, sighting: Sighting) -> Outcome | None:
    data, mark = sighting.data, sighting.mark
    if len(data) < 28 or mark is None:
        return None
    if sent.family is Family.IP:
        version, _, length, _, fragment, ttl, proto, _, src, dst, sport, dport, size, checksum = (
            _FOUR.unpack_from(data)
        )
        right = version == 0x45 and length == len(data) and not fragment & 0x3FFF
        right = right and int.from_bytes(data[:20], "big") % 0xFFFF == 0
        header = 20
    else:
        if len(data) < 48:
            return None
        first, length, proto, ttl, a, b, c, d, sport, dport, size, checksum = _SIX.unpack_from(data)
        src, dst = a << 64 | b, c << 64 | d
        header = 40
        right = first >> 28 == 6 and length == len(data) - header
    size_is = len(data) - header
    right = right and proto == Protocol.UDP and size == size_is and checksum != 0
    if not right or (src + dst + proto + size_is + ones_sum(data[header:])) % 0xFFFF:
        return None
    if sport != sent.sport:
        return None  # the ports that a rule has to give may run out in a burst
    local = sighting.out is None
    return Outcome(
        verdict=Verdict.LOCAL if local else Verdict.FORWARD,
        out=sighting.out,
        src=src,
        dst=dst,
        sport=sport,
        dport=dport,
        ttl=ttl,
        mark=mark,
        dnat=dst != sent.dst or dport != sent.dport,
        snat=src != sent.src,
    )
