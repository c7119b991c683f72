"""Random routing rules, tables and settings for a node, from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from backends.model.node import Node
from backends.model.routes import DEFAULT, MAIN, Route, RoutingRule, RuleAction
from translate.ir import AddressType, Family, Interval

__all__ = ["with_random_rules", "with_random_settings"]

_TABLES: Final = (DEFAULT, 100, 101, 1 << 31)
_REFUSING: Final = (
    AddressType.BLACKHOLE,
    AddressType.UNREACHABLE,
    AddressType.PROHIBIT,
    AddressType.THROW,
)
_MARKS: Final = ((0x4000, 0x4000), (0x1, 0xF), (0x2, 0xFFFFFFFF), (0x0, 0x4000), (0x8000, 0xC000))


def with_random_settings(node: Node, seed: int) -> Node:
    """Return the node; for half of the seeds, its ``route_localnet`` settings are removed."""
    if random.Random(f"settings {seed}").random() < 0.5:
        return node
    kept = {name: value for name, value in node.sysctls.items() if not name.endswith(".route_localnet")}
    return replace(node, sysctls=kept)


def with_random_rules(node: Node, family: Family, seed: int) -> Node:
    """Return the node with rules and tables in addition to its own.

    The tables have routes through each of the node's interfaces, of each type, and to networks that its own
    routes lead to. The same node, family and seed give the same result.
    """
    draw = random.Random(f"{seed} {family}")
    networks = tuple(dict.fromkeys(_networks(node, family)))
    routes = [r for r in _routes(draw, node, family, networks) if draw.random() < 0.6]
    rules = tuple(_rule(draw, node, family, networks) for _ in range(draw.randint(2, 5)))
    kept = [r for r in node.rules if draw.random() < 0.9 or r.table != DEFAULT]
    both = sorted((*kept, *rules), key=lambda rule: rule.priority)
    return replace(node, routes=(*node.routes, *routes), rules=tuple(both))


def _networks(node: Node, family: Family) -> Iterator[Interval]:
    """Yield networks that packets of the node go to or come from, and one half of all addresses."""
    yield from (a.network for i in node.interfaces for a in i.addresses if a.family is family)
    yield from (r.dst for r in node.main_routes(family) if r.dst.size < 1 << (family.bits - 1))
    yield Interval.prefix(0, 1, family.bits)


def _routes(
    draw: random.Random, node: Node, family: Family, networks: tuple[Interval, ...]
) -> Iterator[Route]:
    everything = Interval.prefix(0, 0, family.bits)
    gateways = [r for r in node.main_routes(family) if r.via is not None]
    devices = [i.name for i in node.interfaces if any(a.family is family for a in i.addresses)]
    for table in _TABLES:
        for dst in (everything, *draw.sample(networks, min(3, len(networks)))):
            kind = draw.choice((AddressType.UNICAST, AddressType.UNICAST, *_REFUSING))
            if kind is not AddressType.UNICAST:
                yield Route(family=family, dst=dst, table=table, type=kind)
            elif gateways and draw.random() < 0.5:
                gateway = draw.choice(gateways)
                yield replace(gateway, dst=dst, table=table)
            else:
                yield Route(family=family, dst=dst, dev=draw.choice(devices), table=table)


def _rule(draw: random.Random, node: Node, family: Family, networks: tuple[Interval, ...]) -> RoutingRule:
    action = RuleAction.LOOKUP if draw.random() < 0.8 else draw.choice(tuple(RuleAction))
    mark, mask = draw.choice(_MARKS) if draw.random() < 0.5 else (0, 0)
    devices = [i.name for i in node.interfaces]
    return RoutingRule(
        family=family,
        priority=draw.choice((0, 10, 10, 500, 32766, 40000)),
        action=action,
        table=draw.choice((MAIN, *_TABLES)) if action is RuleAction.LOOKUP else MAIN,
        src=draw.choice(networks) if draw.random() < 0.25 else None,
        dst=draw.choice(networks) if draw.random() < 0.25 else None,
        iif=draw.choice(("lo", *devices)) if draw.random() < 0.25 else "",
        oif=draw.choice(devices) if draw.random() < 0.05 else "",
        mark=mark,
        mask=mask,
        negated=draw.random() < 0.15,
        suppress=draw.choice((0, 1, 8, 24)) if draw.random() < 0.2 else None,
    )
