"""The node on which the sample rule of an extension is tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from backends.model.node import Node, Route
from nfparity.inputs.batches import load_node
from translate.ir import AddressType, Family, Interval, Ruleset

__all__ = ["node_of"]

_NODES: Final = {
    Family.IP: "tests/corpus/rulesets/every-construct/node.json",
    Family.IP6: "tests/corpus/rulesets/six/node.json",
}
_GROUPS: Final[Mapping[Family, Sequence[int]]] = {Family.IP: (7, 8, 0x12, 0x90), Family.IP6: (0x12, 8, 0x90)}
"""The groups of the interfaces, in their order."""
_REFUSING: Final = {
    Family.IP: {
        (0x0A420000, 16): AddressType.BLACKHOLE,
        (0x0A430000, 16): AddressType.UNREACHABLE,
        (0x0A440000, 16): AddressType.PROHIBIT,
    },
    Family.IP6: {
        (0xFD66 << 112, 32): AddressType.BLACKHOLE,
        (0xFD67 << 112, 32): AddressType.UNREACHABLE,
    },
}
"""Routes of other types, which refuse packets."""


def node_of(ruleset: Ruleset) -> Node:
    """Return the node of a family, with interfaces in the groups that the samples name, and more routes."""
    node = load_node(_NODES[ruleset.family], ruleset)
    groups = zip(node.interfaces, _GROUPS[ruleset.family], strict=True)
    interfaces = tuple(replace(interface, group=group) for interface, group in groups)
    routes = (
        Route(family=ruleset.family, dst=Interval.prefix(address, length, ruleset.family.bits), type=kind)
        for (address, length), kind in _REFUSING[ruleset.family].items()
    )
    return replace(node, interfaces=interfaces, routes=(*node.routes, *routes))
