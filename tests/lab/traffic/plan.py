"""The hosts and their places, and the services.

A client outside of the cluster is on the node's uplink, with the node as its router, so that it also reaches
cluster IPs. Each pod has its own veth pair and a host route, as in kind's network (the ptp plugin).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from backends.model.node import Address, Interface, Node, Route
from tests.lab.kuberules import Cluster, Endpoint, Protocol, Service, kube_proxy_rules
from translate.ir import Family, Interval, format_address, parse_address

__all__ = [
    "CLIENTS",
    "DNS",
    "DNS_NAME",
    "GATEWAY",
    "HTTP",
    "NODE",
    "PODS",
    "STICKY",
    "TCP",
    "UDP",
    "UPLINK",
    "Target",
    "all_rules",
    "another_shape",
    "client_batch",
    "cluster",
    "device_batch",
    "node_batch",
    "pod_address",
    "pod_batch",
    "rules",
]

UPLINK: Final = "eth0"
PODS: Final = ("pod1", "pod2", "pod3")
CLIENT_COUNT: Final = 32
DNS_NAME: Final = "who.test"
"""A TXT record that every pod's DNS server answers with the pod's name."""

NODE: Final[Mapping[Family, str]] = {Family.IP: "172.18.0.2", Family.IP6: "2001:db8:1::2"}
GATEWAY: Final[Mapping[Family, str]] = {Family.IP: "10.244.0.1", Family.IP6: "fd00:10:244::1"}
"""The node's address on every pod's veth: the source of masqueraded packets to the pod."""

_POD_NETWORK: Final = {Family.IP: ("10.244.0.0", 24), Family.IP6: ("fd00:10:244::", 64)}
_PODS_OF_CLUSTER: Final = {Family.IP: ("10.244.0.0", 16), Family.IP6: ("fd00:10:244::", 56)}
_SERVICES: Final = {Family.IP: "10.96.0.0", Family.IP6: "fd00:10:96::"}
_ALL: Final = {Family.IP: "0.0.0.0/0", Family.IP6: "::/0"}
_UPLINK_LENGTH: Final = {Family.IP: 24, Family.IP6: 64}
_FIRST_CLIENT: Final = 100
_PORT: Final = 8080


def _moved(family: Family, start: str, by: int) -> str:
    return format_address(family, parse_address(family, start) + by)


def _clients(family: Family) -> tuple[str, ...]:
    by = range(_FIRST_CLIENT - 2, _FIRST_CLIENT - 2 + CLIENT_COUNT)
    return tuple(_moved(family, NODE[family], n) for n in by)


CLIENTS: Final[Mapping[Family, tuple[str, ...]]] = {f: _clients(f) for f in Family}


def pod_address(family: Family, pod: str) -> str:
    """Return the address of a pod."""
    return _moved(family, _POD_NETWORK[family][0], 2 + PODS.index(pod))


@dataclass(frozen=True, slots=True)
class Target:
    """A service of the plan: the ``offset`` of its cluster IP, its ports, and its port in a pod."""

    name: str
    offset: int
    port: int
    protocol: Protocol
    node_port: int
    pod_port: int = _PORT
    affinity: int = 0
    external_local: bool = False

    def cluster_ip(self, family: Family) -> str:
        """Return its cluster IP."""
        return _moved(family, _SERVICES[family], self.offset)


TCP: Final = Target("traffic/echo:tcp", 10, 80, Protocol.TCP, 30080)
UDP: Final = Target("traffic/echo:udp", 10, 80, Protocol.UDP, 30080)
STICKY: Final = Target("traffic/sticky:tcp", 11, 80, Protocol.TCP, 30081, affinity=10800)
LOCAL: Final = Target("traffic/local:tcp", 12, 80, Protocol.TCP, 30082, external_local=True)
HTTP: Final = Target("traffic/web:http", 13, 80, Protocol.TCP, 30083, pod_port=8000)
DNS: Final = Target("kube-system/kube-dns:dns", 53, 53, Protocol.UDP, 30053, pod_port=53)
_TARGETS: Final = (TCP, UDP, STICKY, LOCAL, HTTP, DNS)
EMPTY: Final = Target("traffic/empty:tcp", 14, 80, Protocol.TCP, 30084)
"""A service without endpoints, which kube-proxy's rules reject."""


def cluster(family: Family, endpoints: Mapping[Target, tuple[str, ...]] | None = None) -> Cluster:
    """Return the plan's cluster. ``endpoints`` names the pods of some targets; the others have all.

    There are always services of one, two and three endpoints of each protocol, so that a target never gets a
    new shape when its endpoints change.
    """
    by_service = endpoints or {}
    services = [_service(family, t, by_service.get(t, PODS)) for t in _TARGETS]
    services.append(_service(family, EMPTY, ()))
    services += _fillers(family)
    network, length = _PODS_OF_CLUSTER[family]
    return Cluster(
        family=family,
        services=tuple(services),
        pods=Interval.prefix(parse_address(family, network), length, family.bits),
        node_ip=parse_address(family, NODE[family]),
        node=_node(),
    )


def rules(family: Family, endpoints: Mapping[Target, tuple[str, ...]] | None = None) -> str:
    """Return the rules that kube-proxy writes for :func:`cluster`."""
    return kube_proxy_rules(cluster(family, endpoints))


def all_rules(endpoints: Mapping[Target, tuple[str, ...]] | None = None) -> dict[Family, str]:
    """Return the rules of both families."""
    return {family: rules(family, endpoints) for family in Family}


def another_shape(rules: Mapping[Family, str]) -> dict[Family, str]:
    """Return the rules with an additional rule of a new kind, which no packet of the traffic matches."""
    rule = "-A FORWARD -p udp -m udp --dport 9 -j DROP"
    # The filter table is the first one.
    return {family: text.replace("\nCOMMIT", f"\n{rule}\nCOMMIT", 1) for family, text in rules.items()}


def _service(family: Family, target: Target, pods: tuple[str, ...]) -> Service:
    return Service(
        name=target.name,
        cluster_ip=parse_address(family, target.cluster_ip(family)),
        port=target.port,
        protocol=target.protocol,
        endpoints=tuple(_endpoint(family, pod, target.pod_port) for pod in pods),
        node_port=target.node_port,
        affinity=target.affinity,
        external_local=target.external_local,
    )


def _fillers(family: Family) -> list[Service]:
    fillers = []
    for count in (1, 2, 3):
        for k, protocol in enumerate((Protocol.TCP, Protocol.UDP)):
            offset, port = 100 + count, 31000 + 2 * count + k
            target = Target(f"traffic/filler-{count}:{protocol}", offset, 80, protocol, port)
            fillers.append(_service(family, target, PODS[:count]))
    return fillers


def _endpoint(family: Family, pod: str, port: int) -> Endpoint:
    return Endpoint(parse_address(family, pod_address(family, pod)), port, local=True)


def _node() -> Node:
    def address(family: Family, text: str, length: int) -> Address:
        return Address(family, parse_address(family, text), length)

    interfaces = [Interface(UPLINK, tuple(address(f, NODE[f], _UPLINK_LENGTH[f]) for f in Family))]
    own = tuple(address(f, GATEWAY[f], f.bits) for f in Family)
    interfaces += [Interface(pod, own) for pod in PODS]
    routes = []
    for f in Family:
        default, first = Interval.prefix(0, 0, f.bits), parse_address(f, CLIENTS[f][0])
        routes.append(Route(family=f, dst=default, dev=UPLINK, via=first))
        for pod in PODS:
            host = parse_address(f, pod_address(f, pod))
            routes.append(Route(family=f, dst=Interval.prefix(host, f.bits, f.bits), dev=pod))
    return Node(tuple(interfaces), tuple(routes))


# Commands for ip(8), one batch for each host


def node_batch(node: Node) -> str:
    """Return the ``ip`` commands that give the node's existing devices their addresses and routes."""
    lines = ["link set lo up"]
    for interface in node.interfaces:
        lines += device_batch(node, interface.name)
    return "\n".join((*lines, *_routes(node, UPLINK), ""))


def device_batch(node: Node, name: str) -> list[str]:
    """Return the ``ip`` commands that bring up one device of the node, with addresses and routes to a pod."""
    interface = node.interface(name)
    assert interface is not None
    lines = [f"address add {a} dev {name}{_nodad(a.family)}" for a in interface.addresses]
    return [*lines, f"link set {name} up", *(_routes(node, name) if name != UPLINK else ())]


def _routes(node: Node, device: str) -> list[str]:
    return [f"route add {r}" for r in node.routes if r.dev == device]


def client_batch() -> str:
    """Return the ``ip`` commands that set up the client outside of the cluster."""
    lines = ["link set lo up"]
    for f in Family:
        for text in CLIENTS[f]:
            lines.append(f"address add {text}/{_UPLINK_LENGTH[f]} dev {UPLINK}{_nodad(f)}")
    lines.append(f"link set {UPLINK} up")
    lines += [f"route add {_ALL[f]} via {NODE[f]} dev {UPLINK}" for f in Family]
    return "\n".join((*lines, ""))


def pod_batch(pod: str) -> str:
    """Return the ``ip`` commands that set up a pod; all other addresses are behind the node."""
    lines = ["link set lo up"]
    for f in Family:
        lines.append(f"address add {pod_address(f, pod)}/{f.bits} dev {UPLINK}{_nodad(f)}")
    lines.append(f"link set {UPLINK} up")
    for f in Family:
        lines.append(f"route add {GATEWAY[f]} dev {UPLINK}")
        lines.append(f"route add {_ALL[f]} via {GATEWAY[f]} dev {UPLINK}")
    return "\n".join((*lines, ""))


def _nodad(family: Family) -> str:
    return " nodad" if family is Family.IP6 else ""
