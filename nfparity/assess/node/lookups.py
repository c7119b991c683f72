"""Lookups of addresses in a node's routing tables, as nft's ``fib`` makes them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from backends.model.node import Node
from backends.model.routes import MAIN
from nfparity.assess.node.cells import Cells
from translate.ir import AddressType, Family, Interval

__all__ = ["Lookups"]

_SPECIAL: Final = {
    Family.IP: ((0, 8), (127 << 24, 8), (224 << 24, 4), ((1 << 32) - 1, 32)),
    Family.IP6: ((1, 128), (0xFE80 << 112, 10), (0xFF << 120, 8)),
}
"""The prefixes of addresses with a type of their own: the local host, the link, multicast and broadcast."""


class Lookups:
    """The properties of an address that decide about its route and its type, in any table and by any rule."""

    def __init__(self, node: Node, family: Family) -> None:
        rules = node.rules_of(family)
        addresses = [(a, i.name) for i in node.interfaces for a in i.addresses if a.family is family]
        special = [Interval.prefix(address, length, family.bits) for address, length in _SPECIAL[family]]
        self._cells = Cells([*special, *(p for rule in rules for p in (rule.src, rule.dst) if p is not None)])
        self._own = {a.value: device for a, device in addresses}
        self._ends = {end for a, _ in addresses for end in (a.network.low, a.network.high)}
        by_length = any(rule.suppress is not None for rule in rules)
        tables: dict[int, list[tuple[Interval, Hashable]]] = {MAIN: []}
        for address, device in addresses:
            network = address.network
            tables[MAIN].append((network, (AddressType.UNICAST, device, network.size if by_length else 0)))
        for route in (route for route in node.routes if route.family is family):
            target = (route.type, route.dev, route.dst.size if by_length else 0)
            tables.setdefault(route.table, []).append((route.dst, target))
        self._tables = [sorted(rows, key=lambda row: row[0].size) for rows in tables.values()]

    def of(self, address: int) -> Hashable:
        """Return the properties; addresses with equal ones have equal results of every lookup."""
        routes = [next((target for dst, target in rows if address in dst), None) for rows in self._tables]
        return self._cells.of(address), self._own.get(address), address in self._ends, tuple(routes)
