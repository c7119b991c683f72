"""Facts about a node: interfaces, addresses, routes, routing rules, sysctls."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from ipaddress import IPv4Interface, IPv6Interface, ip_interface
from types import MappingProxyType
from typing import Final

from backends.model.routes import (
    DEFAULT_RULES,
    MAIN,
    Route,
    RoutingRule,
    read_routes,
    read_rules,
    route_to_json,
    rules_to_json,
)
from translate.dataclass import dataclass, field
from translate.ir import AddressType, Family, Interval, format_address
from translate.jsoninput import JsonObject, Problems, json_kind, read_object

__all__ = [
    "DEFAULT_SYSCTLS",
    "Address",
    "Interface",
    "Node",
    "Route",
    "is_device_name",
    "node_from_json",
    "node_to_json",
]

DEFAULT_SYSCTLS: Final = MappingProxyType(
    {
        "net.ipv4.ip_forward": "1",
        "net.ipv4.conf.all.rp_filter": "0",
        "net.ipv4.conf.default.rp_filter": "0",
        "net.ipv4.conf.all.route_localnet": "0",
        "net.ipv6.conf.all.forwarding": "1",
        "net.netfilter.nf_conntrack_tcp_be_liberal": "0",
        "net.netfilter.nf_conntrack_tcp_ignore_invalid_rst": "0",
        "net.netfilter.nf_conntrack_tcp_loose": "1",
        "net.netfilter.nf_conntrack_checksum": "1",
    }
)
"""The default values of sysctls, used by the simulator and the kernel backends."""


@dataclass(frozen=True, slots=True)
class Address:
    """An address on an interface, with the prefix length of its network."""

    family: Family
    value: int
    prefix_length: int

    def __str__(self) -> str:
        return f"{format_address(self.family, self.value)}/{self.prefix_length}"

    @property
    def network(self) -> Interval:
        """The addresses of the connected network."""
        return Interval.prefix(self.value, self.prefix_length, self.family.bits)


@dataclass(frozen=True, slots=True)
class Interface:
    """A network interface; the first address of a network is the primary one."""

    name: str
    addresses: tuple[Address, ...] = ()
    group: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """A node. ``lo`` with 127.0.0.1/8 and ::1/128 and all connected routes are implied.

    ``interfaces`` does not list ``lo``; ``sysctls`` holds only values that differ from
    :data:`DEFAULT_SYSCTLS`. ``assumed`` lists the facts that were inferred instead of given. ``rules`` are
    all routing rules, in order of priority.
    """

    interfaces: tuple[Interface, ...]
    routes: tuple[Route, ...] = ()
    sysctls: Mapping[str, str] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    rules: tuple[RoutingRule, ...] = field(default=DEFAULT_RULES, repr=False)

    def rules_of(self, family: Family) -> tuple[RoutingRule, ...]:
        """Return the routing rules of one family."""
        return tuple(rule for rule in self.rules if rule.family is family)

    def has_own_rules(self, family: Family) -> bool:
        """Return whether routing rules were added or deleted (``fib_has_custom_rules``)."""
        return self.rules_of(family) != tuple(rule for rule in DEFAULT_RULES if rule.family is family)

    def main_routes(self, family: Family) -> tuple[Route, ...]:
        """Return the routes of one family in the main table that lead out of an interface."""
        return tuple(
            route
            for route in self.routes
            if route.family is family and route.table == MAIN and route.type is AddressType.UNICAST
        )

    def routes_everything(self, family: Family) -> bool:
        """Return whether each address of a family has a route, as far as its main table shows."""
        whole = Interval(0, (1 << family.bits) - 1)
        routes = self.main_routes(family)
        return not self.has_own_rules(family) and any(route.dst == whole for route in routes)

    def sysctl(self, name: str) -> str:
        """Return a sysctl's value on this node. Raises KeyError for an unknown one without a given value."""
        value = self.sysctls.get(name)
        return DEFAULT_SYSCTLS[name] if value is None else value

    def group_of(self, name: str) -> int:
        """Return the group of an interface; that of ``lo`` is 0."""
        interface = self.interface(name)
        return 0 if interface is None else interface.group

    def interface(self, name: str) -> Interface | None:
        """Return the interface called ``name``, or None."""
        for interface in self.interfaces:
            if interface.name == name:
                return interface
        return None


def is_device_name(text: str) -> bool:
    """Return whether a network device can have this name (``dev_valid_name``)."""
    fits = 0 < len(text.encode(errors="surrogateescape")) < _NAME_BYTES
    return fits and text not in (".", "..") and not _NOT_IN_NAMES.search(text)


_NAME_BYTES: Final = 16
"""``IFNAMSIZ``, which includes the final NUL."""
_NOT_IN_NAMES: Final = re.compile(r"[/:\s\0]")


def node_from_json(text: str | bytes, *, name: str) -> Node:
    """Read a node file (``docs/inputs.md`` has the format).

    Raises ParseError with the place of each fault: text that is not JSON, unknown keys, bad addresses, routes
    through missing interfaces.
    """
    problems = Problems()
    data = read_object(
        text, name=name, problems=problems, expected="an object with interfaces, routes, sysctls"
    )
    listed = data.object("interfaces")
    if listed is None or not listed.data:
        data.problem("interfaces", "expected an object of at least one name and its addresses")
        problems.raise_if_any()
    assert listed is not None
    groups = _groups(data, listed.data)
    interfaces = [Interface(dev, tuple(_addresses(listed, dev)), groups.get(dev, 0)) for dev in listed.data]
    routes = read_routes(data, listed.data)
    rules = read_rules(data, listed.data)
    sysctls = data.object("sysctls")
    values = {} if sysctls is None else {key: _sysctl(sysctls, key) for key in sysctls.data}
    data.finish()
    problems.raise_if_any()
    return Node(tuple(interfaces), routes, values, rules=rules)


def node_to_json(node: Node) -> str:
    """Return the node in the form that :func:`node_from_json` reads."""
    groups = {i.name: i.group for i in node.interfaces if i.group}
    data: dict[str, object] = {
        "interfaces": {i.name: [str(a) for a in i.addresses] for i in node.interfaces},
        **({"groups": groups} if groups else {}),
        "routes": [route_to_json(route) for route in node.routes],
        **rules_to_json(node.rules),
        "sysctls": dict(node.sysctls),
    }
    return json.dumps(data, indent=2) + "\n"


def _groups(data: JsonObject, interfaces: Collection[str]) -> dict[str, int]:
    """Return the groups that the node file gives to interfaces; faults become problems of ``data``."""
    listed = data.object("groups")
    groups: dict[str, int] = {}
    for name, group in {} if listed is None else listed.data.items():
        assert listed is not None
        if name not in interfaces:
            listed.problem(name, f"the node has no interface {name}")
        elif isinstance(group, bool) or not isinstance(group, int) or not 0 <= group < 1 << 32:
            listed.problem(name, f"expected a number from 0 to 4294967295, found {json_kind(group)}")
        else:
            groups[name] = group
    return groups


def _addresses(listed: JsonObject, dev: str) -> Iterator[Address]:
    if dev == "lo" or not is_device_name(dev):
        listed.problem(dev, f"{dev!r} is not a usable interface name")
    texts = listed.data[dev]
    for index, text in enumerate(texts if isinstance(texts, list) else [texts]):
        item = index if isinstance(texts, list) else None
        try:
            yield _address(ip_interface(text if isinstance(text, str) else ""))
        except ValueError:
            listed.problem(
                dev, f"expected an address and its prefix length, found {json_kind(text)}", index=item
            )


def _address(interface: IPv4Interface | IPv6Interface) -> Address:
    family = Family.IP if interface.version == 4 else Family.IP6
    return Address(family, int(interface.ip), interface.network.prefixlen)


def _sysctl(sysctls: JsonObject, key: str) -> str:
    value = sysctls.data[key]
    if isinstance(value, bool) or not isinstance(value, str | int):
        sysctls.problem(key, f"expected a number or a string, found {json_kind(value)}")
    return str(value)
