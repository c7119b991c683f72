"""A connection as conntrack keeps it (``struct nf_conn``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from backends.model.packet import Tuple
from backends.simulator.conntrack.tcp import TcpTrack
from translate.ir import ConnectionStatus

__all__ = ["DNAT", "ORIGINAL", "REPLY", "SNAT", "Entry"]

ORIGINAL: Final = 0
REPLY: Final = 1

# Entries hold the status as a plain integer: an IntFlag's arithmetic takes ten times as long.
SNAT = int(ConnectionStatus.SNAT)
DNAT = int(ConnectionStatus.DNAT)


@dataclass(slots=True, eq=False)
class Entry:
    """A ``struct nf_conn``. ``mark`` is the connection mark; ``expires`` is a time of the virtual clock.

    ``status`` has the bits of :class:`ConnectionStatus`. ``source_done``/``destination_done``: NAT has bound
    that side (``IPS_SRC_NAT_DONE``, ``IPS_DST_NAT_DONE``). ``masquerade_out`` is the output device of a
    masquerade.
    """

    original: Tuple
    reply: Tuple
    status: int = 0
    mark: int = 0
    tcp: TcpTrack | None = None
    udp_stream_after: float = 0.0
    expires: float = 0.0
    confirmed: bool = False
    source_done: bool = False
    destination_done: bool = False
    masquerade_out: str | None = None

    def split(self) -> Entry:
        """Return a copy that another run can change."""
        return Entry(
            self.original,
            self.reply,
            self.status,
            self.mark,
            None if self.tcp is None else self.tcp.split(),
            self.udp_stream_after,
            self.expires,
            self.confirmed,
            self.source_done,
            self.destination_done,
            self.masquerade_out,
        )

    def tuple(self, direction: int) -> Tuple:
        """Return the tuple of packets that go in ``direction``."""
        return self.original if direction == ORIGINAL else self.reply
