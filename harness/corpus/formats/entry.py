"""The default entry interface of a packet: the reverse route of its source."""

from __future__ import annotations

from backends.model.node import Node
from translate.ir import Family, format_address

__all__ = ["Entries", "entry_of"]


class Entries:
    """The interfaces that lead to addresses of one family, by the prefixes of a node.

    The longest prefix among connected networks and routes wins, connected ones first, as in the
    kernel's main table.
    """

    def __init__(self, node: Node, family: Family) -> None:
        self._family = family
        self._own = {a.value for i in node.interfaces for a in i.addresses if a.family is family}
        networks = [(a.family, a.network, i.name) for i in node.interfaces for a in i.addresses]
        networks += [(r.family, r.dst, r.dev) for r in node.main_routes(family)]
        by_size: dict[int, dict[int, str]] = {}
        for of, network, dev in networks:
            if of is family:
                by_size.setdefault(network.size, {}).setdefault(network.low, dev)
        self._by_size = sorted(by_size.items())

    def of(self, src: int) -> str | None:
        """Return the interface to which ``src`` is connected, or None for the node itself.

        Raises ValueError when there is no route to ``src``.
        """
        loopback = src >> 24 == 127 if self._family is Family.IP else src == 1
        if loopback or src in self._own:
            return None
        for size, networks in self._by_size:
            dev = networks.get(src & -size)
            if dev is not None:
                return dev
        raise ValueError(f"no route leads to {format_address(self._family, src)}, so auto finds no interface")


def entry_of(node: Node, family: Family, src: int) -> str | None:
    """Return the interface to which ``src`` is connected, or None for the node itself.

    For many addresses, one :class:`Entries` is faster.
    """
    return Entries(node, family).of(src)
