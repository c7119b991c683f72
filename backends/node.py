"""The node's facts: interfaces, addresses, routes, sysctls. Shared by simulator and kernels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv6Interface, ip_address, ip_interface, ip_network
from types import MappingProxyType
from typing import Final

from translate.errors import Diagnostic, ParseError
from translate.ir import Family, Interval, Origin, format_address

__all__ = ["DEFAULT_SYSCTLS", "Address", "Interface", "Node", "Route", "node_from_json", "node_to_json"]

DEFAULT_SYSCTLS: Final = MappingProxyType(
    {
        "net.ipv4.ip_forward": "1",
        "net.ipv4.conf.all.rp_filter": "0",
        "net.ipv4.conf.default.rp_filter": "0",
        "net.ipv4.conf.all.route_localnet": "0",
        "net.ipv6.conf.all.forwarding": "1",
        "net.netfilter.nf_conntrack_tcp_be_liberal": "0",
        "net.netfilter.nf_conntrack_tcp_loose": "1",
        "net.netfilter.nf_conntrack_checksum": "1",
    }
)
"""What holds on a node where the facts say nothing else; simulator and kernels both apply it."""


@dataclass(frozen=True, slots=True)
class Address:
    """An address on an interface, with the prefix of the network that it stands in."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A unicast route of the main table. ``via`` None: the destination is on the link."""

    family: Family
    dst: Interval
    dev: str
    via: int | None = None

    def __str__(self) -> str:
        length = self.dst.prefix_length(self.family.bits)
        dst = f"{format_address(self.family, self.dst.low)}/{length}"
        via = f" via {format_address(self.family, self.via)}" if self.via is not None else ""
        return f"{dst}{via} dev {self.dev}"


@dataclass(frozen=True, slots=True)
class Node:
    """A node. ``lo`` with 127.0.0.1/8 and ::1/128 and all connected routes are implied.

    ``interfaces`` does not list ``lo``; ``sysctls`` holds only what differs from
    :data:`DEFAULT_SYSCTLS`. ``assumed`` lists what was inferred instead of given.
    """

    interfaces: tuple[Interface, ...]
    routes: tuple[Route, ...] = ()
    sysctls: Mapping[str, str] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()

    def sysctl(self, name: str) -> str:
        """Return a sysctl's value on this node; KeyError when neither given nor known."""
        found = self.sysctls.get(name)
        return DEFAULT_SYSCTLS[name] if found is None else found

    def interface(self, name: str) -> Interface | None:
        """Return the interface called ``name``, or None."""
        for interface in self.interfaces:
            if interface.name == name:
                return interface
        return None


def node_from_json(text: str, *, name: str) -> Node:
    """Read a node file (``docs/inputs.md`` has the format).

    Raises ParseError for text that is not JSON, for unknown keys, bad addresses and routes
    through interfaces that do not exist.
    """
    problems: list[str] = []
    try:
        data = json.loads(text)
    except json.JSONDecodeError as e:
        raise _errors(name, [f"not JSON: {e}"]) from e
    if not isinstance(data, dict):
        raise _errors(name, ["expected an object with interfaces, routes, sysctls"])
    problems.extend(f"unknown key {k!r}" for k in data if k not in {"interfaces", "routes", "sysctls"})
    interfaces: list[Interface] = []
    given = data.get("interfaces", {})
    if not isinstance(given, dict) or not given:
        raise _errors(name, ["interfaces: expected an object of at least one name and its addresses"])
    for dev, addresses in given.items():
        if not 0 < len(dev) <= 15 or any(c in dev for c in "/ \t\n:") or dev in (".", "..", "lo"):
            problems.append(f"interfaces: {dev!r} is not a usable interface name")
        found = []
        for one in addresses if isinstance(addresses, list) else [addresses]:
            try:
                found.append(_address(ip_interface(one)))
            except ValueError as e:
                problems.append(f"interfaces: {dev}: {e}")
        interfaces.append(Interface(dev, tuple(found)))
    routes: list[Route] = []
    listed = data.get("routes", [])
    if not isinstance(listed, list):
        problems.append("routes: expected a list")
        listed = []
    for i, one in enumerate(listed):
        try:
            routes.append(_route(one, set(given)))
        except (ValueError, TypeError) as e:
            problems.append(f"routes[{i}]: {e}")
    sysctls = data.get("sysctls", {})
    if not isinstance(sysctls, dict):
        problems.append("sysctls: expected an object")
        sysctls = {}
    if problems:
        raise _errors(name, problems)
    return Node(tuple(interfaces), tuple(routes), {str(k): str(v) for k, v in sysctls.items()})


def node_to_json(node: Node) -> str:
    """Return the node in the form that :func:`node_from_json` reads."""
    routes = []
    for route in node.routes:
        length = route.dst.prefix_length(route.family.bits)
        one = {"dst": f"{format_address(route.family, route.dst.low)}/{length}"}
        if route.via is not None:
            one["via"] = format_address(route.family, route.via)
        routes.append({**one, "dev": route.dev})
    data = {
        "interfaces": {i.name: [str(a) for a in i.addresses] for i in node.interfaces},
        "routes": routes,
        "sysctls": dict(node.sysctls),
    }
    return json.dumps(data, indent=2) + "\n"


def _errors(name: str, messages: list[str]) -> ParseError:
    return ParseError(tuple(Diagnostic(Origin(name), m) for m in messages))


def _family(version: int) -> Family:
    return Family.IP if version == 4 else Family.IP6


def _address(given: IPv4Interface | IPv6Interface) -> Address:
    return Address(_family(given.version), int(given.ip), given.network.prefixlen)


def _route(one: dict[str, str], devices: set[str]) -> Route:
    if not isinstance(one, dict) or "dst" not in one:
        raise ValueError("expected an object with dst, dev and perhaps via")
    unknown = set(one) - {"dst", "via", "dev"}
    if unknown:
        raise ValueError(f"unknown key {sorted(unknown)[0]!r}")
    if one.get("dev") not in devices:
        raise ValueError(f"dev {one.get('dev')!r} is not among the interfaces")
    via = ip_address(one["via"]) if one.get("via") is not None else None
    if one["dst"] == "default":
        family = Family.IP if via is None else _family(via.version)
        dst = Interval.prefix(0, 0, family.bits)
    else:
        network = ip_network(one["dst"])
        family = _family(network.version)
        dst = Interval.prefix(int(network.network_address), network.prefixlen, family.bits)
    if via is not None and _family(via.version) is not family:
        raise ValueError(f"via {via} and dst {one['dst']} are of different families")
    return Route(family=family, dst=dst, dev=one["dev"], via=None if via is None else int(via))
