"""The default entry interface of a packet: the reverse route of its source."""

from __future__ import annotations

from backends.model.node import Node
from translate.ir import Family, format_address

__all__ = ["entry_of"]


def entry_of(node: Node, family: Family, src: int) -> str | None:
    """Return the interface to which ``src`` is connected, or None for the node itself.

    The longest prefix among connected networks and routes wins, connected ones first, as in the
    kernel's main table. Raises ValueError when there is no route to ``src``.
    """
    loopback = src >> 24 == 127 if family is Family.IP else src == 1
    own = any(a.family is family and a.value == src for i in node.interfaces for a in i.addresses)
    if loopback or own:
        return None
    best: tuple[int, str] | None = None
    networks = [(a.family, a.network, i.name) for i in node.interfaces for a in i.addresses]
    networks += [(r.family, r.dst, r.dev) for r in node.routes]
    for of, network, dev in networks:
        if of is not family or src not in network:
            continue
        if best is None or network.size < best[0]:
            best = (network.size, dev)
    if best is None:
        raise ValueError(f"no route leads to {format_address(family, src)}, so auto finds no interface")
    return best[1]
