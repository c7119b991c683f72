"""Ports that connections have, and closed connections whose ports a new one may take."""

from __future__ import annotations

from collections.abc import Iterable

from backends.model.packet import Port, Tuple
from backends.simulator.conntrack.connection import ORIGINAL, REPLY, SNAT, ConntrackEntry
from backends.simulator.conntrack.table import Conntrack
from backends.simulator.conntrack.tcp_states import TcpState

__all__ = ["closed_connections", "ports_in_use"]


def ports_in_use(
    conntrack: Conntrack, t: Tuple, new: ConntrackEntry, *, source: bool, but: Iterable[ConntrackEntry]
) -> list[Port]:
    """Return the source (or destination) ports of known tuples that are otherwise equal to ``t``.

    ``new`` is the connection that looks for a port. ``but``: connections that do not count.
    """
    others = conntrack.equal_but_port(t, new.zone, source=source)
    return [port for port, entry, _ in others if not any(entry is each for each in but)]


def closed_connections(
    conntrack: Conntrack, t: Tuple, new: ConntrackEntry, *, source: bool
) -> list[tuple[Port, ConntrackEntry]]:
    """Return the closed connections whose place a new one may take, with their ports in ``t``.

    Since Linux 6.5, a SYN ends a TCP connection with source NAT in one of the states from TIME_WAIT on,
    if its sequence number is after that connection's (``nf_nat_may_kill``, ``nf_seq_has_advanced``).
    """
    if new.tcp is None or new.tcp.state is not TcpState.SYN_SENT:
        return []
    end = new.tcp.seen[ORIGINAL].end
    return [
        (port, entry)
        for port, entry, direction in conntrack.equal_but_port(t, new.zone, source=source)
        if direction == REPLY
        and entry.tcp is not None
        and entry.tcp.state >= TcpState.TIME_WAIT
        and entry.status & SNAT
        and 0 < (end - entry.tcp.seen[ORIGINAL].end) & 0xFFFFFFFF < 1 << 31
    ]
