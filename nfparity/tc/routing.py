"""Refusal of rules on a node whose routing rules the tc program does not honour."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final

from backends.model.node import Node
from backends.model.routes import RoutingRule
from backends.tc_ebpf.node.listings import Listings
from backends.tc_ebpf.node.routingrules import check_routing
from nfparity.snapshot.routingrules import UNKNOWN_RULE
from translate.dataclass import replace
from translate.ir import Family, Ruleset

__all__ = ["check_node", "check_this_node"]

_LAST: Final = 0xFFFFFFFF
_MAIN: Final = 254
_LOOPBACK: Final = "lo"


def check_node(node: Node, ruleset: Ruleset) -> None:
    """Raise UnsupportedError if the tc program would route packets differently than the node does.

    A routing rule that a Node cannot represent counts as one that may match any packet. ``ruleset`` may be a
    sample of the rules.
    """
    if any(note.startswith(UNKNOWN_RULE) for note in node.assumed):
        node = replace(node, rules=(*node.rules, _any_packet(ruleset.family)))
    check_routing(node, ruleset)


def check_this_node(ruleset: Ruleset, read: Callable[[], Node]) -> None:
    """Do the same for the current network namespace; ``read`` returns its node, which takes time.

    A namespace without devices but lo has no other routes. One that routes as a new one is never refused.
    """
    if all(name == _LOOPBACK for _, name in socket.if_nameindex()):
        return
    with Listings() as listings:
        if listings.routes_as_a_new_namespace(ruleset.family):
            return
    check_node(read(), ruleset)


def _any_packet(family: Family) -> RoutingRule:
    return RoutingRule(family=family, priority=_LAST, table=_MAIN)
