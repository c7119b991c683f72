"""A packet on its path through the stack, with the metadata that the kernel keeps about it."""

from __future__ import annotations

from enum import Enum

from backends.model.link import frame_type
from backends.model.packet import Packet
from backends.simulator.conntrack.connection import ORIGINAL, ConntrackEntry
from backends.simulator.routing.path import Path
from translate.dataclass import dataclass, field
from translate.ir import ConnectionState, Family, PacketType

__all__ = ["Skb", "SocketKind"]


class SocketKind(Enum):
    """The socket that a packet comes from, if any."""

    NONE = "none"
    KERNEL = "kernel"
    """A socket without a file, which no process has opened."""
    OPENED = "opened"


@dataclass(slots=True)
class Skb:
    """A ``struct sk_buff``.

    ``dev`` is the input device, empty for a packet made on the node until it goes through ``lo``.
    ``entry``, ``direction`` and ``state`` are the content of ``skb->_nfct``; without an entry the state is
    INVALID or UNTRACKED, and None before conntrack has seen the packet. ``attached``: ``skb->_nfct`` is not
    zero though there is no entry and the packet is not UNTRACKED, as in an answer to an UNTRACKED packet
    (``nf_conntrack_attach``). ``link`` is the number of the input device among the node's interfaces, from 1;
    0 for ``lo`` and for none. ``stripped``: padding has replaced the segment's option (``tcpoptstrip_tg``).
    """

    packet: Packet
    mark: int = 0
    dev: str = ""
    path: Path | None = None
    entry: ConntrackEntry | None = None
    direction: int = ORIGINAL
    state: ConnectionState | None = field(default=None)
    attached: bool = False
    socket: SocketKind = SocketKind.NONE
    link: int = 0
    stripped: bool = False
    left: float | None = None
    """The seconds until the packet's connection is forgotten, at the time when conntrack saw the packet; None
    before the connection is confirmed, when its timer is no time of the clock (``nf_ct_expires``)."""
    for_this_machine: bool = False
    """True if ``-m cluster`` has changed the type of a multicast frame to that of a frame to this machine."""

    def split(self) -> Skb:
        """Return a copy for another run of the flow, with a copy of its unconfirmed connection."""
        entry = None if self.entry is None else self.entry.split()
        return Skb(
            self.packet,
            self.mark,
            self.dev,
            self.path,
            entry,
            self.direction,
            self.state,
            self.attached,
            self.socket,
            self.link,
            self.stripped,
            self.left,
            self.for_this_machine,
        )

    @property
    def type(self) -> PacketType:
        """The kind of the frame (``pkt_type``); a packet made here or through ``lo`` is for this host."""
        kind = frame_type(self.packet, self.link) if self.link else PacketType.UNICAST
        return PacketType.UNICAST if self.for_this_machine and kind is PacketType.MULTICAST else kind

    @property
    def ct_state(self) -> ConnectionState:
        """The state that ``--ctstate`` tests; INVALID if the packet has none (``xt_conntrack``)."""
        return ConnectionState.INVALID if self.state is None else self.state

    def route_key(self) -> tuple[object, ...]:
        """Return the values whose change makes ``ipt_mangle_out`` or ``ip6t_mangle_out`` route again."""
        packet = self.packet
        if packet.family is Family.IP:
            return self.mark, packet.tos, packet.src, packet.dst
        return self.mark, packet.tos, packet.src, packet.dst, packet.ttl
