"""A cluster seen from each of its nodes, and snapshots of all nodes: fleets for tests and benchmarks.

The nodes of a cluster have the same services. They differ in their address, in the network of their pods, and
in the endpoints that run on them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from backends.model.node import Address, Interface, Node, Route
from nfparity.capture.files import write_files
from tests.lab.kuberules.cluster import Cluster, Endpoint, prefix_text
from tests.lab.kuberules.rules import kube_proxy_rules
from translate.ir import Family, Interval, format_address

__all__ = ["at_node", "node_files", "write_fleet"]


def at_node(cluster: Cluster, number: int) -> Cluster:
    """Return the cluster as node ``number`` sees it; 0 is the node for which ``cluster`` was drawn.

    Every node has an address of its own. The networks of pods are those of the drawn cluster; if there are
    more nodes than networks, nodes share them.
    """
    uplink, bridge = cluster.node.interfaces
    (outer,), (inner,) = uplink.addresses, bridge.addresses
    default, *others = cluster.node.routes
    size = 1 << (cluster.family.bits - inner.prefix_length)
    networks = len(others) + 1
    place = number % networks
    first = inner.value - 1
    own = Interval(first + place * size, first + (place + 1) * size - 1)
    node = Node(
        (
            Interface(uplink.name, (replace(outer, value=outer.value + number),)),
            Interface(bridge.name, (replace(inner, value=own.low + 1),)),
        ),
        (
            default,
            *(
                _route(cluster.family, uplink.name, first, size, outer, k)
                for k in range(networks)
                if k != place
            ),
        ),
    )
    services = tuple(
        replace(s, endpoints=tuple(_as_listed(e, own) for e in s.endpoints)) for s in cluster.services
    )
    return replace(cluster, services=services, node_ip=cluster.node_ip + number, node=node)


def _route(family: Family, uplink: str, first: int, size: int, outer: Address, k: int) -> Route:
    low = first + k * size
    return Route(family=family, dst=Interval(low, low + size - 1), dev=uplink, via=outer.value + k)


def _as_listed(endpoint: Endpoint, own: Interval) -> Endpoint:
    return replace(endpoint, local=endpoint.address in own)


def node_files(cluster: Cluster, *, hostname: str) -> dict[str, bytes]:
    """Return the files of a snapshot of the cluster's node."""
    four = cluster.family is Family.IP
    # ip lists the routes that the kernel adds for networks; an address without one has no network.
    connected = [
        {"dst": prefix_text(a.family, a.network), "dev": i.name, "protocol": "kernel"}
        for i in cluster.node.interfaces
        for a in i.addresses
    ]
    data: dict[str, object] = {
        "addr.json": [_device(i) for i in cluster.node.interfaces],
        "route.json" if four else "route6.json": [*map(_listed, cluster.node.routes), *connected],
        "sysctl.json": {"net.ipv4.conf.all.route_localnet": "1"},
        "meta.json": {"hostname": hostname, "kernel": {"release": "6.1.0"}},
    }
    rules = "iptables-save" if four else "ip6tables-save"
    return {
        rules: kube_proxy_rules(cluster).encode(),
        **{name: json.dumps(content).encode() for name, content in data.items()},
    }


def _device(interface: Interface) -> dict[str, object]:
    info = [
        {
            "family": "inet" if a.family is Family.IP else "inet6",
            "local": format_address(a.family, a.value),
            "prefixlen": a.prefix_length,
        }
        for a in interface.addresses
    ]
    return {"ifname": interface.name, "flags": ["UP"], "link_type": "ether", "addr_info": info}


def _listed(route: Route) -> dict[str, str]:
    everywhere = route.dst.size == 1 << route.family.bits
    listed = {"dst": "default" if everywhere else prefix_text(route.family, route.dst), "dev": route.dev}
    if route.via is not None:
        listed["gateway"] = format_address(route.family, route.via)
    return listed


def write_fleet(cluster: Cluster, folder: Path, nodes: int) -> Iterator[Path]:
    """Write a ``.tar.gz`` for each node, and yield their paths; CaptureError if a file already exists."""
    width = len(str(nodes - 1))
    for number in range(nodes):
        name = f"node-{number:0{width}d}"
        path = folder / f"{name}.tar.gz"
        write_files(str(path), node_files(at_node(cluster, number), hostname=name), now=0)
        yield path
