"""Where many new connections to one destination go: the same first packet from one source port after another.

Only the destination of what leaves is looked at, which makes this several times as fast as replaying flows;
what else a packet should be is the replayer's business.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from backends.kernel.frames import build
from backends.kernel.loader import Loader
from backends.kernel.tapnode import TapNode
from backends.packet import Packet
from translate.errors import MachineError
from translate.ir import Family

__all__ = ["Destination", "sample"]

Destination = tuple[int, int | None]
"""Address and port that a packet left with."""

_FIRST, _PORTS = 1024, 64512
_BATCH: Final = 16384
"""After so many connections they are forgotten, long before conntrack's table or an LRU map is full."""


def sample(
    tap: TapNode, loader: Loader, packet: Packet, entry: str, times: int
) -> dict[Destination | None, int]:
    """Send ``packet`` in at ``entry`` ``times`` times, each a new connection, and count where it leaves to.

    None counts the packets that did not leave. For UDP and TCP; ``sport`` is replaced. Raises
    MachineError when one packet leaves twice.
    """
    at = (slice(16, 20), slice(22, 24)) if tap.family is Family.IP else (slice(24, 40), slice(42, 44))
    counts: Counter[Destination | None] = Counter()
    tap.drain()
    for n in range(times):
        if n % _BATCH == 0:
            loader.forget(tap)
        tap.inject(entry, build(packet.changed(sport=_FIRST + n % _PORTS)))
        left = [s.data for s in tap.drain() if s.out is not None]
        if len(left) > 1:
            raise MachineError(f"{packet}: {len(left)} packets left for one")
        if not left:
            counts[None] += 1
            continue
        address, port = (int.from_bytes(left[0][part], "big") for part in at)
        counts[address, port] += 1
    return dict(counts)
