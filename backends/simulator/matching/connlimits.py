"""The connections that rules with ``-m connlimit`` count (``nf_conncount``).

A rule has a list of connections for each address and zone. A connection enters the list when its first packet
meets the rule, and leaves it when it is closed or forgotten. The kernel removes closed connections at most
once in a jiffy; here each packet arrives in a jiffy of its own.
"""

from __future__ import annotations

from typing import Final

from backends.model.packet import Tuple
from backends.simulator.conntrack.connection import NO_ZONE, Zone
from backends.simulator.conntrack.skb import Skb
from backends.simulator.conntrack.table import Conntrack
from backends.simulator.conntrack.tcp_states import TcpState
from backends.simulator.conntrack.tuples import tuple_of
from backends.simulator.matching.view import HotDrop
from translate.dataclass import dataclass, field
from translate.ir import ConnectionLimit, ConnectionStatus, SetDirection

__all__ = ["ConnectionLists"]

_ASSURED: Final = int(ConnectionStatus.ASSURED)
_CLOSED: Final = (TcpState.TIME_WAIT, TcpState.CLOSE)


@dataclass(slots=True)
class _List:
    """The connections of one address; ``cleaned`` is the last packet at which closed ones were removed."""

    connections: list[tuple[Tuple, Zone]]
    cleaned: Skb


@dataclass(slots=True)
class ConnectionLists:
    """The lists of all rules of one run, empty when it begins."""

    conntrack: Conntrack
    lists: dict[tuple[object, int, int], _List] = field(default_factory=dict)

    def matches(self, test: ConnectionLimit, rule: object, skb: Skb) -> bool:
        """Count the packet's connection for ``rule`` and return whether the test holds (``connlimit_mt``).

        Raises HotDrop if no connection counts: the packet ended the last one of its address, or has no tuple.
        """
        packet = skb.packet
        address = packet.src if test.side is SetDirection.SRC else packet.dst
        zone = NO_ZONE if skb.entry is None else skb.entry.zone
        key = rule, address & test.mask, zone.number
        count = self._count(key, skb)
        if not count:
            raise HotDrop
        return (count > test.limit) is test.above

    def _count(self, key: tuple[object, int, int], skb: Skb) -> int:
        """Return the number of connections, with that of the packet (``nf_conncount_count_skb``)."""
        entry, zone = skb.entry, NO_ZONE
        if entry is None or entry.template is not None:
            zone = NO_ZONE if entry is None else entry.zone
            own = tuple_of(skb.packet)
            if own is None:
                return 0
            match = self.conntrack.find(own, zone)
            entry = None if match is None else match[0]
        else:
            own, zone = entry.original, entry.zone
        connection_list = self.lists.get(key)
        if connection_list is None:
            self.lists[key] = _List([(own, zone)], skb)
            return 1
        confirmed = entry is not None and entry.confirmed
        if entry is not None and confirmed and entry.status & _ASSURED:
            self._clean(connection_list, skb)
            return len(connection_list.connections)
        if (confirmed or connection_list.cleaned is not skb) and self._clean(
            connection_list, skb, (own, zone)
        ):
            return len(connection_list.connections)
        connection_list.connections.append((own, zone))
        return len(connection_list.connections)

    def _clean(self, connection_list: _List, skb: Skb, wanted: tuple[Tuple, Zone] | None = None) -> bool:
        """Remove closed and forgotten connections before ``wanted``; return whether it is in the list."""
        for connection in list(connection_list.connections):
            match = self.conntrack.find(*connection)
            if match is not None and connection == wanted:
                return True
            if match is None or (match[0].tcp is not None and match[0].tcp.state in _CLOSED):
                connection_list.connections.remove(connection)
        connection_list.cleaned = skb
        return False
