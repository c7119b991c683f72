"""The result of a routing decision."""

from __future__ import annotations

from enum import Enum
from typing import Final

from translate.dataclass import dataclass
from translate.ir import AddressType

__all__ = ["LOOPBACK", "NoRoute", "Path"]

LOOPBACK: Final = "lo"


class NoRoute(Enum):
    """The reason why a packet has no route; the comments describe the reaction of the stack."""

    MARTIAN = "martian source or destination"  # dropped
    NOT_FORWARDING = "forwarding is off"  # dropped: ip_error is silent on such an interface
    NET_UNREACHABLE = "no route"  # answered with an ICMP error (ip_error), and so are the next two
    HOST_UNREACHABLE = "its route is of type unreachable"
    PROHIBITED = "routing prohibits it"
    BLACKHOLE = "it is routed into a black hole"  # dropped
    FAILED = "no route from here"  # the caller gets an error


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A route of a packet: to the node itself, or out of ``dev`` to the neighbour ``via``.

    ``dev`` is ``lo`` for a local destination. ``via`` None: the destination itself is the neighbour.
    ``source`` is the source address for a packet without one.
    """

    type: AddressType
    dev: str
    via: int | None = None
    source: int = 0

    @property
    def local(self) -> bool:
        """Return whether the packet is for this node (``RTCF_LOCAL``)."""
        return self.dev == LOOPBACK

    @property
    def answerable(self) -> bool:
        """Return whether an ICMP error may be sent (not ``RTCF_BROADCAST|RTCF_MULTICAST``)."""
        return self.type not in (AddressType.BROADCAST, AddressType.MULTICAST)
