"""The router of either family."""

from __future__ import annotations

from backends.model.node import Node
from backends.simulator.routing.ip4 import Router
from backends.simulator.routing.ip6 import Router6
from translate.ir import Family

__all__ = ["AnyRouter", "router_of"]

AnyRouter = Router | Router6


def router_of(node: Node, family: Family) -> AnyRouter:
    """Return the node's router for one family."""
    return Router(node) if family is Family.IP else Router6(node)
