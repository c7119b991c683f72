"""Clusters drawn to a wanted size and mixture. The same shape gives the same cluster."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from backends.model.node import Address, Interface, Node, Route
from tests.lab.kuberules.cluster import Cluster, Endpoint, Protocol, Service
from translate.errors import InputError
from translate.ir import Family, Interval, parse_address

__all__ = ["Shape", "draw_cluster"]

_PODS_PER_NODE: Final = 200
_MOST_NODES: Final = 256
_FIRST_NODE_PORT, _NODE_PORTS = 30000, 2768
_PORTS: Final = (80, 443, 8080, 5432, 53, 9090)
_RANGES: Final = {
    # The last range contains the node itself. The others are of RFC 5737, RFC 1918 and RFC 3849.
    Family.IP: ("198.51.100.0/24", "192.0.2.0/28", "10.20.0.0/16", "172.18.0.0/24"),
    Family.IP6: ("2001:db8:100::/64", "2001:db8:200::/56", "fd00:20::/48", "2001:db8:1::/64"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The size and contents of a cluster; counts are of services unless stated otherwise.

    ``endpoints`` is per service. ``without_endpoints`` have none at all. Each load balancer has a node
    port too; ``source_ranges`` are of the load balancers, ``external_local`` of those with a node port.
    Of the services with a policy Local, every third has no endpoint on the node. ``base`` adds the API
    server and the cluster's DNS. The rest is as in :class:`Cluster`.
    """

    family: Family = Family.IP
    services: int = 10
    endpoints: int = 3
    node_ports: int = 0
    load_balancers: int = 0
    external_ips: int = 0
    source_ranges: int = 0
    external_local: int = 0
    internal_local: int = 0
    affinity: int = 0
    without_endpoints: int = 0
    udp: int = 0
    sctp: int = 0
    base: bool = True
    masquerade_all: bool = False
    localhost_node_ports: bool = True
    masquerade_agent: bool = False
    comments: bool | None = None
    affinity_seconds: int = 10800
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The networks of a family's addresses; the node has the second address of ``nodes``."""

    services: Interval
    pods: Interval
    pod_step: int
    nodes: Interval
    balancers: Interval
    external: Interval


def _network(family: Family, text: str) -> Interval:
    address, _, length = text.partition("/")
    return Interval.prefix(parse_address(family, address), int(length), family.bits)


def _plan(family: Family) -> _Plan:
    def network(text: str) -> Interval:
        return _network(family, text)

    if family is Family.IP:
        return _Plan(
            services=network("10.96.0.0/12"),
            pods=network("10.244.0.0/16"),
            pod_step=1 << 8,
            nodes=network("172.18.0.0/16"),
            balancers=network("198.18.0.0/16"),
            external=network("198.19.0.0/16"),
        )
    return _Plan(
        services=network("fd00:10:96::/108"),
        pods=network("fd00:10:244::/56"),
        pod_step=1 << 64,
        nodes=network("2001:db8:1::/64"),
        balancers=network("2001:db8:2::/112"),
        external=network("2001:db8:3::/112"),
    )


def draw_cluster(shape: Shape) -> Cluster:
    """Draw the cluster that ``shape`` describes; InputError if its counts contradict each other."""
    _check(shape)
    rng = random.Random(shape.seed)
    plan = _plan(shape.family)
    services = _roles(shape, plan, rng, _plain(shape, plan, rng))
    nodes = _nodes(shape)
    services = _placed(shape, plan, rng, services, nodes)
    if shape.base:
        services = [*_base(plan), *services]
    return Cluster(
        family=shape.family,
        services=tuple(services),
        pods=plan.pods,
        node_ip=plan.nodes.low + 2,
        node=_node(shape.family, plan, nodes),
        masquerade_all=shape.masquerade_all,
        localhost_node_ports=shape.localhost_node_ports,
        masquerade_agent=shape.masquerade_agent,
        comments=shape.comments,
    )


def _check(shape: Shape) -> None:
    exposed = shape.node_ports + shape.load_balancers
    limits = (
        ("services", shape.services, 1 << 18),
        ("endpoints", shape.services * shape.endpoints, _MOST_NODES * _PODS_PER_NODE),
        ("node_ports and load_balancers", exposed, min(shape.services, _NODE_PORTS)),
        ("external_ips", shape.external_ips, shape.services),
        ("source_ranges", shape.source_ranges, shape.load_balancers),
        ("external_local", shape.external_local, exposed),
        ("internal_local", shape.internal_local, shape.services),
        ("affinity", shape.affinity, shape.services),
        ("without_endpoints", shape.without_endpoints, shape.services),
        ("udp and sctp", shape.udp + shape.sctp, shape.services),
    )
    for name, count, most in limits:
        if not 0 <= count <= most:
            raise InputError(f"{name}: {count} is not between 0 and {most} here")


def _plain(shape: Shape, plan: _Plan, rng: random.Random) -> list[Service]:
    """Return ClusterIP services, still without endpoints."""
    addresses = rng.sample(range(256, plan.services.size - 256), shape.services)
    services = []
    for n, address in enumerate(addresses):
        port = _PORTS[n % len(_PORTS)] if n % 3 else 80
        name = f"team-{n % 40:02d}/app-{n:05d}:main"
        services.append(Service(name=name, cluster_ip=plan.services.low + address, port=port))
    return services


def _roles(shape: Shape, plan: _Plan, rng: random.Random, services: list[Service]) -> list[Service]:
    every = range(shape.services)
    exposed = rng.sample(every, shape.load_balancers + shape.node_ports)
    balanced = exposed[: shape.load_balancers]
    ports = rng.sample(range(_FIRST_NODE_PORT, _FIRST_NODE_PORT + _NODE_PORTS), len(exposed))
    for n, port in zip(exposed, ports, strict=True):
        services[n] = replace(services[n], node_port=port)
    for k, n in enumerate(balanced):
        # Every fourth balancer has two addresses.
        own = range(1, 3) if k % 4 == 3 else range(1, 2)
        addresses = tuple(plan.balancers.low + 4 * k + a for a in own)
        services[n] = replace(services[n], load_balancer_ips=addresses)
    ranges = [_network(shape.family, text) for text in _RANGES[shape.family]]
    for k, n in enumerate(rng.sample(balanced, shape.source_ranges)):
        some = (ranges[1:], ranges[:1], ranges[:3])[k % 3]
        services[n] = replace(services[n], source_ranges=tuple(some))
    for k, n in enumerate(rng.sample(every, shape.external_ips)):
        services[n] = replace(services[n], external_ips=(plan.external.low + 1 + k,))
    free = (p for p in range(_FIRST_NODE_PORT, _FIRST_NODE_PORT + _NODE_PORTS) if p not in set(ports))
    for n in rng.sample(exposed, shape.external_local):
        check = next(free, None) if services[n].load_balancer_ips else None
        services[n] = replace(services[n], external_local=True, health_check_port=check)
    for n in rng.sample(every, shape.internal_local):
        services[n] = replace(services[n], internal_local=True)
    for n in rng.sample(every, shape.affinity):
        services[n] = replace(services[n], affinity=shape.affinity_seconds)
    others = rng.sample(every, shape.udp + shape.sctp)
    for k, n in enumerate(others):
        services[n] = replace(services[n], protocol=Protocol.UDP if k < shape.udp else Protocol.SCTP)
    return services


def _nodes(shape: Shape) -> int:
    return max(3, -(-shape.services * shape.endpoints // _PODS_PER_NODE))


def _placed(
    shape: Shape, plan: _Plan, rng: random.Random, services: list[Service], nodes: int
) -> list[Service]:
    """Return the services with endpoints; each endpoint is a different pod."""
    pods = [(p % nodes, p // nodes) for p in range(shape.services * shape.endpoints)]
    rng.shuffle(pods)
    here = [p for p in pods if p[0] == 0]
    elsewhere = [p for p in pods if p[0] != 0]
    none = set(rng.sample(range(len(services)), shape.without_endpoints))
    choosy = [n for n, s in enumerate(services) if s.external_local or s.internal_local]
    wanted = {n: min(k % 3, shape.endpoints) for k, n in enumerate(choosy)}
    placed = list(services)
    for n in (*choosy, *(n for n in range(len(services)) if n not in wanted)):
        if n in none:
            continue
        count = wanted.get(n, _share(rng, here, elsewhere, shape.endpoints))
        chosen = [*_taken(here, count), *_taken(elsewhere, shape.endpoints - count)]
        chosen += _taken(here, shape.endpoints - len(chosen))
        target = services[n].port if n % 2 else 8080
        placed[n] = replace(services[n], endpoints=_endpoints(shape.family, plan, chosen, target))
    return placed


def _share(rng: random.Random, here: Sequence[object], elsewhere: Sequence[object], count: int) -> int:
    """Return the number of a service's endpoints on this node, for the pods that are left."""
    left = len(here) + len(elsewhere)
    return sum(rng.randrange(left) < len(here) for _ in range(count)) if left else 0


def _taken(pods: list[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    count = min(count, len(pods))
    return [pods.pop() for _ in range(count)]


def _endpoints(family: Family, plan: _Plan, pods: list[tuple[int, int]], port: int) -> tuple[Endpoint, ...]:
    endpoints = [
        Endpoint(plan.pods.low + node * plan.pod_step + 2 + pod, port, local=node == 0) for node, pod in pods
    ]
    return tuple(sorted(endpoints, key=lambda e: e.text(family)))


def _base(plan: _Plan) -> list[Service]:
    """Return the services of the API server, at another node's address, and of DNS, over UDP and TCP."""
    api = Endpoint(plan.nodes.low + 3, 6443)
    near, far = plan.pods.low + plan.pod_step - 6, plan.pods.low + 2 * plan.pod_step - 6
    rules = [
        Service(name="default/kubernetes:https", cluster_ip=plan.services.low + 1, port=443, endpoints=(api,))
    ]
    dns = (("dns", 53, Protocol.UDP), ("dns-tcp", 53, Protocol.TCP), ("metrics", 9153, Protocol.TCP))
    for name, port, protocol in dns:
        endpoints = (Endpoint(near, port, local=True), Endpoint(far, port))
        rules.append(
            Service(
                name=f"kube-system/kube-dns:{name}",
                cluster_ip=plan.services.low + 10,
                port=port,
                protocol=protocol,
                endpoints=endpoints,
            )
        )
    return rules


def _node(family: Family, plan: _Plan, nodes: int) -> Node:
    """Return the first node: its pods are behind a bridge, and other pods behind their nodes."""
    uplink, bridge = "eth0", "cni0"
    length = plan.nodes.prefix_length(family.bits)
    assert length is not None
    pod_length = family.bits - (plan.pod_step - 1).bit_length()
    interfaces = (
        Interface(uplink, (Address(family, plan.nodes.low + 2, length),)),
        Interface(bridge, (Address(family, plan.pods.low + 1, pod_length),)),
    )
    default = Route(family=family, dst=Interval.prefix(0, 0, family.bits), dev=uplink, via=plan.nodes.low + 1)
    others = tuple(
        Route(
            family=family,
            dst=Interval.prefix(plan.pods.low + n * plan.pod_step, pod_length, family.bits),
            dev=uplink,
            via=plan.nodes.low + 2 + n,
        )
        for n in range(1, nodes)
    )
    return Node(interfaces, (default, *others))
