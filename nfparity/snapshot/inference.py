"""An inferred node for rules without one: an uplink, and one pod interface per endpoint network.

The inferred facts are listed in :attr:`Node.assumed`, which every report prints. Endpoints are the
destinations of DNAT rules. The node also has the interfaces that rules name, because their rules could not
match otherwise.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from backends.model.node import Address, Interface, Node, Route
from translate.ir import (
    Dnat,
    Family,
    Field,
    FieldTest,
    Interval,
    Name,
    Rule,
    Ruleset,
    format_address,
    parse_address,
)

__all__ = ["infer_node"]

_UPLINKS: Final = {
    # RFC 5737 and RFC 3849: no cluster uses them, so no address in the rules is the node's by accident.
    Family.IP: ("192.0.2.0", "198.51.100.0", "203.0.113.0"),
    Family.IP6: ("2001:db8:ffff::", "2001:db8:fffe::", "2001:db8:fffd::"),
}
_NETWORK: Final = {Family.IP: 24, Family.IP6: 64}
_MOST_INTERFACES: Final = 32


def infer_node(ruleset: Ruleset) -> Node:
    """Return a node for the rules, with the assumptions made."""
    family = ruleset.family
    rules = list(ruleset.rules())
    endpoints = sorted({a for rule in rules for a in _endpoints(rule, family)})
    named = _named_interfaces(rules, family)
    assumed: list[str] = []
    networks, length = _networks(endpoints, family)
    taken: set[str] = {name for name, _ in named}
    uplink, used = _free("eth", taken), set(endpoints) | _named_addresses(rules)
    gateway, address = _uplink(family, networks)
    interfaces = [Interface(uplink, (address,))]
    routes: list[Route] = []
    assumed.append(
        f"interface {uplink} with {address}, and the default route via {format_address(family, gateway)}"
    )
    for network in networks:
        owned = next((n for n, net in named if net is not None and network.low in net), None)
        if owned is not None:
            continue
        name = _free("pod", taken)
        hosts = itertools.chain((network.low + 1,), range(network.high - 1, network.low + 1, -1))
        value = next((v for v in hosts if v not in used), network.low + 1)
        count = sum(e in network for e in endpoints)
        whom = f"for {count} endpoint{'s' if count > 1 else ''}"
        if network.low in endpoints or network.high in endpoints:
            # The ends of a connected network are not addresses of hosts; in a routed network they can be.
            own = Address(family, value, family.bits)
            route = Route(family=family, dst=network, dev=name)
            routes.append(route)
            assumed.append(f"interface {name} with {own}, and the route {route}, {whom}")
        else:
            own = Address(family, value, length)
            assumed.append(f"interface {name} with {own}, {whom}")
        interfaces.append(Interface(name, (own,)))
    for name, net in named:
        if net is None:
            interfaces.append(Interface(name))
            assumed.append(f"interface {name} without an address, because rules name it")
        else:
            size = net.prefix_length(family.bits)
            assert size is not None
            own = Address(family, net.low + 1, size)
            interfaces.append(Interface(name, (own,)))
            assumed.append(f"interface {name} with {own}, because a rule names both")
    tests = (test for rule in rules for test in rule.tests if isinstance(test, FieldTest))
    if any(test.field in _GROUPS for test in tests):
        assumed.append("every interface in group 0, although rules test for groups")
    default = Route(family=family, dst=Interval.prefix(0, 0, family.bits), dev=uplink, via=gateway)
    return Node(tuple(interfaces), (default, *routes), {}, tuple(assumed))


_GROUPS: Final = (Field.IIF_GROUP, Field.OIF_GROUP)


def _endpoints(rule: Rule, family: Family) -> Iterator[int]:
    for action in rule.actions:
        if isinstance(action, Dnat) and action.addresses is not None:
            for value in {action.addresses.low, action.addresses.high}:
                if not _is_loopback(value, family):
                    yield value


def _named_addresses(rules: list[Rule]) -> set[int]:
    """Return the single addresses that rules test, which an inferred address must avoid."""
    return {
        value.low
        for rule in rules
        for test in rule.tests
        if isinstance(test, FieldTest) and test.field.is_address
        for value in test.values
        if isinstance(value, Interval) and value.is_point
    }


def _is_loopback(value: int, family: Family) -> bool:
    return value >> 24 == 127 if family is Family.IP else value == 1


def _networks(endpoints: list[int], family: Family) -> tuple[list[Interval], int]:
    """Return the networks of the endpoints, widened until there are few enough for one interface each."""
    length = _NETWORK[family]
    while True:
        networks = sorted({Interval.prefix(e, length, family.bits) for e in endpoints})
        if len(networks) <= _MOST_INTERFACES:
            return networks, length
        length -= 1


def _uplink(family: Family, networks: list[Interval]) -> tuple[int, Address]:
    length = _NETWORK[family]
    for text in _UPLINKS[family]:
        base = parse_address(family, text)
        if not any(
            base in network or network.low in Interval.prefix(base, length, family.bits)
            for network in networks
        ):
            break
    return base + 1, Address(family, base + 2, length)


def _named_interfaces(rules: list[Rule], family: Family) -> list[tuple[str, Interval | None]]:
    """Return the interfaces in rules, with their network according to ``-s NET ! -o DEV``."""
    interfaces: dict[str, Interval | None] = {}
    for rule in rules:
        tests = [t for t in rule.tests if isinstance(t, FieldTest)]
        sources = [t.values for t in tests if t.field is Field.SADDR and not t.negated and t.mask is None]
        for test in tests:
            if not test.field.is_name:
                continue
            for value in test.values:
                if not isinstance(value, Name) or value.text in ("", "lo"):
                    continue
                name = f"{value.text}0"[:15] if value.wildcard else value.text
                interfaces.setdefault(name, None)
                if test.field is Field.OIF and test.negated and len(sources) == 1:
                    (network,) = sources[0][:1]
                    if isinstance(network, Interval) and _is_network(network, family):
                        interfaces[name] = network
    return sorted(interfaces.items())


def _is_network(network: Interval, family: Family) -> bool:
    length = network.prefix_length(family.bits)
    return length is not None and 8 <= length <= family.bits - 2


def _free(stem: str, taken: set[str]) -> str:
    name = next(f"{stem}{n}" for n in range(len(taken) + 1) if f"{stem}{n}" not in taken)
    taken.add(name)
    return name
