"""Functions that read the packet's connection: its tuples, mark, status, timer and counts."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Final

from backends.simulator.conntrack.connection import ORIGINAL, REPLY, ConntrackEntry
from backends.simulator.matching.undecided import Undecided
from backends.simulator.matching.view import Reader, Value, View

__all__ = ["BOTH", "BYTES", "PACKETS", "average", "counted", "expires", "of_connection"]

PACKETS: Final = attrgetter("packets")
BYTES: Final = attrgetter("bytes")
BOTH: Final = (ORIGINAL, REPLY)


def of_connection(read: Callable[[ConntrackEntry], Value]) -> Reader:
    """Return a reader of a connection's field, absent without a connection (``xt_conntrack``)."""
    return lambda view: None if view.skb.entry is None else read(view.skb.entry)


def expires(view: View) -> Value:
    """Return the seconds until the connection is forgotten (``nf_ct_expires``)."""
    if view.skb.entry is None:
        return None
    if view.skb.left is None:
        raise Undecided("--ctexpire reads the timer of a connection that is not confirmed yet")
    return int(view.skb.left)


def _of_account(read: Callable[[ConntrackEntry], int]) -> Reader:
    """Return a reader of counts, which a template lacks (``connbytes_mt``)."""
    return of_connection(lambda entry: None if entry.template is not None else read(entry))


def counted(read: Callable[[ConntrackEntry], tuple[int, int]], sides: tuple[int, ...]) -> Reader:
    """Return a reader of the packets or bytes of some directions of a connection."""
    return _of_account(lambda entry: sum(read(entry)[side] for side in sides))


def average(sides: tuple[int, ...]) -> Reader:
    """Return a reader of the average length of packets, 0 where there are none."""

    def read(entry: ConntrackEntry) -> int:
        packets = sum(entry.packets[side] for side in sides)
        return sum(entry.bytes[side] for side in sides) // packets if packets else 0

    return _of_account(read)
