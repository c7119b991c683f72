"""The end of a packet's path through the stack."""

from __future__ import annotations

from typing import NamedTuple

from backends.model.packet import Packet
from translate.ir import RejectKind

__all__ = ["Delivered", "Dropped", "Fate", "Forwarded", "Rejected"]


class Forwarded(NamedTuple):
    """The packet left on ``out``."""

    packet: Packet
    mark: int
    out: str


class Delivered(NamedTuple):
    """The packet was delivered to the node."""

    packet: Packet
    mark: int


class Dropped(NamedTuple):
    """The packet was dropped, for the reason ``why``.

    ``error`` is the ICMP error about an IPv4 packet without a route, if no error came out.
    """

    why: str
    error: RejectKind | None = None


class Rejected(NamedTuple):
    """The packet was dropped, and its sender was sent an answer of this ``kind``."""

    kind: str
    why: str


Fate = Forwarded | Delivered | Dropped | Rejected
