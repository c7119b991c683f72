"""The destinations of many new connections, counted: one first packet from each of many source ports.

Only the destinations of packets that leave are read, in bursts, which makes this many times as fast as
replaying flows. The replayer tests everything else about a packet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from backends.model.packet import Packet
from backends.replay.loader import Loader
from backends.testbed.tapnode import QUEUE, TapNode
from backends.wire.frames import build
from translate.dataclass import dataclass, replace
from translate.errors import MachineError
from translate.ir import Family, Protocol

__all__ = ["Destination", "sample"]

Destination = tuple[int, int | None]
"""Destination address and port of a packet that left."""

_FIRST, _PORTS = 1024, 64512
_BURST: Final = 512
"""The number of packets sent before those that left are read."""
_BATCH: Final = 16384
"""The number of connections after which all are forgotten, before conntrack's table or an LRU map is full."""

assert _BURST < QUEUE
assert _BATCH % _BURST == 0


def sample(
    tap: TapNode, loader: Loader, packet: Packet, entry: str, times: int
) -> dict[Destination | None, int]:
    """Send ``packet`` into ``entry`` as ``times`` new connections, and count their destinations.

    The key None counts the packets that did not leave. ``packet`` is UDP or TCP. Each connection has its own
    source port and a label, which is the payload of UDP or the lower half of TCP's sequence number. Raises
    MachineError if a packet leaves twice.
    """
    template = _Template.of(packet)
    if loader.pins:
        tap.run_on(packet.cpu)
    counts: Counter[bytes] = Counter()
    missing = 0
    tap.drain()
    for begin in range(0, times, _BURST):
        if begin % _BATCH == 0:
            loader.forget(tap)
        ports = [_FIRST + n % _PORTS for n in range(begin, min(begin + _BURST, times))]
        tap.inject_all(entry, template.packets(ports))
        waiting = {_label(port) for port in ports}
        for data in tap.left():
            if not template.is_of(data):
                continue  # for example an ICMP error of the node
            label = data[template.label]
            if label in waiting:
                waiting.remove(label)
                counts[data[template.address] + data[template.port]] += 1
            elif template.sport_of(label) in ports:
                raise MachineError(f"{packet}: two packets left for one that was sent")
        missing += len(waiting)
    tap.drain()  # discards the marks of the packets
    destinations: dict[Destination | None, int] = {
        (int.from_bytes(at[:-2], "big"), int.from_bytes(at[-2:], "big")): n for at, n in counts.items()
    }
    return destinations | ({None: missing} if missing else {})


@dataclass(frozen=True, slots=True)
class _Template:
    """A packet as bytes, with the offsets to write before it is sent and to read when it has left."""

    data: bytes
    kind: tuple[int, int]
    """Bytes that do not change on the way: the protocol, and TCP's flags."""
    sport: slice
    label: slice
    address: slice
    port: slice

    @classmethod
    def of(cls, packet: Packet) -> _Template:
        label = _label(_FIRST)
        if packet.proto == Protocol.TCP:
            labelled = replace(
                packet, sport=_FIRST, seq=packet.seq >> 16 << 16 | int.from_bytes(label, "big")
            )
            offset = 6
        else:
            labelled = replace(packet, sport=_FIRST, payload=label)
            offset = 8
        four = packet.family is Family.IP
        header, proto, address = (20, 9, slice(16, 20)) if four else (40, 6, slice(24, 40))
        return cls(
            data=build(labelled),
            kind=(proto, header + 13 if packet.proto == Protocol.TCP else proto),
            sport=slice(header, header + 2),
            label=slice(header + offset, header + offset + 2),
            address=address,
            port=slice(header + 2, header + 4),
        )

    def packets(self, ports: list[int]) -> Iterator[bytearray]:
        """Yield the packet from each source port; it is the same object every time.

        The sum of a port and its label is the same for all ports, so the same checksum is correct for all
        packets.
        """
        data, sport, label = bytearray(self.data), self.sport, self.label
        for port in ports:
            data[sport] = port.to_bytes(2, "big")
            data[label] = _label(port)
            yield data

    def is_of(self, data: bytes) -> bool:
        """Return whether a packet that left was made from this template."""
        first, second = self.kind
        return data[first] == self.data[first] and data[second] == self.data[second]

    def sport_of(self, label: bytes) -> int:
        return 0xFFFF - int.from_bytes(label, "big")


def _label(port: int) -> bytes:
    return (0xFFFF - port).to_bytes(2, "big")
