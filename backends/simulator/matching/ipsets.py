"""Lookups in ipsets, by hash as in the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from backends.model.packet import PortClass
from backends.simulator.chance.ports import PickedPort, Ports
from backends.simulator.matching.fields import reader
from backends.simulator.matching.view import Reader, View
from translate.dataclass import dataclass, field
from translate.ir import (
    SET_PORT_PROTOCOLS,
    Cell,
    Family,
    Field,
    Interval,
    IpSet,
    Protocol,
    SetDirection,
    SetType,
)

__all__ = ["Members", "members_of"]

_Key = tuple[object, ...]
"""A value for each cell of the key; the value of a net is a number."""
_Sides = tuple[SetDirection, ...]
_BITMAP_PROTOCOLS: Final = (Protocol.TCP, Protocol.UDP)


@dataclass(frozen=True, slots=True)
class Members:
    """The elements of one set by key, for each prefix length of its nets, the longest first.

    ``tables`` pairs the mask of a net with its elements by key: True for a member, False for ``nomatch``.
    Sets without nets have one table.
    """

    set: IpSet
    net: int | None
    tables: tuple[tuple[int, Mapping[_Key, bool]], ...]
    _readers: dict[_Sides, tuple[Reader, ...]] = field(default_factory=dict)

    def holds(self, directions: _Sides, view: View, ports: Ports, member: bool = True) -> bool:
        """Return whether the packet is in the set; if not ``member``, whether ``nomatch`` excludes it.

        A packet that lacks a field of the key, such as a port for a ``bitmap:port``, is not a member
        (``ip_set_test`` treats errors of the set type in this way).
        """
        key = self.key(directions, view)
        if key is None:
            return False
        for index, value in enumerate(key):
            if isinstance(value, PickedPort):
                return self._picked(key, index, value, ports, member)
        return self.decides(key) is member

    def key(self, directions: _Sides, view: View) -> tuple[object, ...] | None:
        """Return the packet's value for each cell, None if the type of the set reads no key from it."""
        if self.set.type is SetType.BITMAP_PORT and view.skb.packet.proto not in _BITMAP_PROTOCOLS:
            return None
        if view.skb.packet.is_headless and self._lacks_port(directions, view):
            return None
        readers = self._readers.get(directions)
        if readers is None:
            fields = self.set.fields(directions)
            readers = tuple(_PORTS[f] if f in _PORTS else reader(f) for f in fields)
            self._readers[directions] = readers
        return tuple(read(view) for read in readers)

    def _lacks_port(self, directions: _Sides, view: View) -> bool:
        """Return whether a packet without a transport header lacks a port.

        See ``ip_set_get_ip4_port`` and ``ip_set_get_ip6_port``, and ``get_port`` for truncated packets.
        """
        packet = view.skb.packet
        if _PORTS.keys().isdisjoint(self.set.fields(directions)):
            return False
        if packet.truncated:
            return True
        return packet.family is Family.IP6 or packet.proto in (*SET_PORT_PROTOCOLS, Protocol.ICMP)

    def _picked(
        self, key: tuple[object, ...], index: int, value: PickedPort, ports: Ports, member: bool
    ) -> bool:
        """Return whether a packet with a picked port is in the set; the result narrows the port."""
        known = {n for _, table in self.tables for k in table if isinstance(n := k[index], int)}
        before, behind = key[:index], key[index + 1 :]
        fitting = [n for n in sorted(known) if self.decides((*before, n, *behind)) is member]
        return bool(fitting) and ports.within(value, tuple(Interval.point(n) for n in fitting))

    def decides(self, key: _Key) -> bool | None:
        """Return True if a packet with this key (a number for each cell) is in the set.

        False if a ``nomatch`` element excludes it, and None if no element has the key.
        """
        for mask, table in self.tables:
            if self.net is not None:
                address = key[self.net]
                assert isinstance(address, int)
                key = (*key[: self.net], address & mask, *key[self.net + 1 :])
            member = table.get(key)
            if member is not None:
                return member
        return None


def _port(view: View, *, source: bool) -> int | PortClass:
    """Return the port of the key (``get_port`` of ``ip_set_getport.c``)."""
    packet = view.skb.packet
    if packet.is_icmp:
        return (packet.icmp_type or 0) << 8 | (packet.icmp_code or 0)
    if packet.proto not in SET_PORT_PROTOCOLS:
        return 0
    port = packet.sport if source else packet.dport
    return 0 if port is None else port


_PORTS: Final[Mapping[Field, Reader]] = {
    Field.SPORT: partial(_port, source=True),
    Field.DPORT: partial(_port, source=False),
}


def members_of(sets: Iterable[IpSet], family: Family) -> dict[str, Members]:
    """Return the members of every set by its name."""
    return {ipset.name: _members(ipset, family) for ipset in sets}


def _members(ipset: IpSet, family: Family) -> Members:
    cells = ipset.type.cells
    net = cells.index(Cell.NET) if Cell.NET in cells else None
    tables: dict[int, dict[_Key, bool]] = {}
    for element in ipset.elements:
        mask = 0
        if net is not None:
            mask = (1 << family.bits) - element.key[net].size
        tables.setdefault(mask, {})[tuple(interval.low for interval in element.key)] = not element.nomatch
    return Members(ipset, net, tuple(sorted(tables.items(), key=lambda t: t[0], reverse=True)))
