"""A connection as conntrack keeps it (``struct nf_conn``)."""

from __future__ import annotations

from typing import Final, NamedTuple

from backends.model.packet import Tuple
from backends.simulator.conntrack.tcp import TcpTrack
from translate.dataclass import dataclass
from translate.ir import ConnectionStatus, Template, ZoneSide

__all__ = ["DNAT", "NO_ZONE", "ORIGINAL", "REPLY", "SNAT", "ConntrackEntry", "Zone", "template_of"]

ORIGINAL: Final = 0
REPLY: Final = 1

# Entries have the status as a plain integer: an IntFlag's arithmetic takes ten times as long.
SNAT = int(ConnectionStatus.SNAT)
DNAT = int(ConnectionStatus.DNAT)


class Zone(NamedTuple):
    """A zone of conntrack (``struct nf_conntrack_zone``)."""

    number: int = 0
    side: ZoneSide = ZoneSide.BOTH

    def of(self, direction: int) -> int:
        """Return the zone of tuples in ``direction`` (``nf_ct_zone_id``)."""
        if self.side is ZoneSide.BOTH or (self.side is ZoneSide.ORIGINAL) is (direction == ORIGINAL):
            return self.number
        return 0


NO_ZONE: Final = Zone()


@dataclass(slots=True, eq=False)
class ConntrackEntry:
    """A ``struct nf_conn``.

    ``mark`` is the connection mark, and ``labels`` has a bit for each label. ``expires`` is a time of the
    virtual clock.

    ``status`` has the bits of :class:`ConnectionStatus`. ``source_done``/``destination_done``: NAT has bound
    that side (``IPS_SRC_NAT_DONE``, ``IPS_DST_NAT_DONE``). ``masquerade_out`` is the output device of a
    masquerade. ``packets`` and ``bytes`` are counts of each direction (``nf_conn_acct``). ``template`` is not
    None for a template, which replaces a connection until conntrack sees the packet (``nf_ct_tmpl_alloc``).
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
    zone: Zone = NO_ZONE
    packets: tuple[int, int] = (0, 0)
    bytes: tuple[int, int] = (0, 0)
    template: Template | None = None
    labels: int = 0

    def split(self) -> ConntrackEntry:
        """Return a copy that another run may change."""
        return ConntrackEntry(
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
            self.zone,
            self.packets,
            self.bytes,
            self.template,
            self.labels,
        )

    def count(self, direction: int, length: int) -> None:
        """Count a packet of ``length`` bytes (``nf_ct_acct_update``)."""
        (original_packets, reply_packets), (original_bytes, reply_bytes) = self.packets, self.bytes
        if direction == ORIGINAL:
            self.packets, self.bytes = (
                (original_packets + 1, reply_packets),
                (original_bytes + length, reply_bytes),
            )
        else:
            self.packets, self.bytes = (
                (original_packets, reply_packets + 1),
                (original_bytes, reply_bytes + length),
            )

    def tuple(self, direction: int) -> Tuple:
        """Return the tuple of packets that go in ``direction``."""
        return self.original if direction == ORIGINAL else self.reply


_NOTHING: Final = Tuple(0, 0, 0, 0, 0)


def template_of(action: Template) -> ConntrackEntry:
    """Return the entry of a packet with a template: all zeros, and confirmed."""
    return ConntrackEntry(_NOTHING, _NOTHING, status=int(ConnectionStatus.CONFIRMED), template=action)
