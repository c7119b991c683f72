"""Small clusters that each show one difference between kube-proxy's modes, with rules as kube-proxy's."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from backends.model.node import Node, node_from_json
from nfparity.assess.catalogue import Version
from nfparity.assess.snapshots import AssessOptions
from nfparity.snapshot import Snapshot, Variant
from tests.lab.kuberules import Cluster, Endpoint, Service, kube_proxy_rules
from translate.ir import Family, Interval, parse_address
from translate.read import read_ruleset

__all__ = ["ALWAYS", "HERE", "MADE", "REAL", "Made", "snapshot_files"]

ALWAYS = frozenset({"K05", "K06", "K13", "K32"})
"""The differences on every node with a service: its rules for invalid packets, ClusterIPs and 127.0.0.0/8."""

NODE = {
    "interfaces": {"eth0": ["192.168.0.2/24"], "cni0": ["10.244.0.1/24"]},
    "routes": [{"dst": "default", "via": "192.168.0.1", "dev": "eth0"}],
}
OUTSIDE = "203.0.113.50"

REAL = Path(__file__).parents[2] / "corpus/rulesets/kube-real"
"""The rules of a real kube-proxy 1.30 in both modes, for the same objects."""


def snapshot_files() -> dict[str, bytes]:
    """Return a snapshot of the node of the real kube-proxy's rules, with both families."""

    def device(name: str, *addresses: str) -> dict[str, object]:
        split = [a.split("/") for a in addresses]
        info = [
            {"family": "inet6" if ":" in a else "inet", "local": a, "prefixlen": int(length)}
            for a, length in split
        ]
        return {"ifname": name, "flags": ["UP"], "link_type": "ether", "addr_info": info}

    def route(dst: str, dev: str, gateway: str | None = None) -> dict[str, str]:
        return {"dst": dst, "dev": dev} | (
            {"protocol": "kernel"} if gateway is None else {"gateway": gateway}
        )

    data: dict[str, object] = {
        "addr.json": [
            device("eth0", "192.168.0.2/24", "2001:db8::1/64"),
            device("cni0", "10.244.0.1/24", "fd00:10:244::1/64"),
        ],
        "route.json": [
            route("default", "eth0", "192.168.0.1"),
            route("192.168.0.0/24", "eth0"),
            route("10.244.0.0/24", "cni0"),
            route("10.244.1.0/24", "eth0", "192.168.0.6"),
            route("10.244.2.0/24", "eth0", "192.168.0.7"),
        ],
        "route6.json": [
            route("default", "eth0", "2001:db8::fe"),
            route("2001:db8::/64", "eth0"),
            route("fd00:10:244::/64", "cni0"),
        ],
        "sysctl.json": {"net.ipv4.conf.all.route_localnet": "1"},
        "meta.json": {"hostname": "test-node", "kernel": {"release": "6.1.0"}},
    }
    return {
        "iptables-save": (REAL / "rules.iptables-save").read_bytes(),
        "ip6tables-save": (REAL / "rules.ip6tables-save").read_bytes(),
        "objects.json": (REAL / "objects.json").read_bytes(),
        **{name: json.dumps(content).encode() for name, content in data.items()},
    }


def ip(text: str) -> int:
    return parse_address(Family.IP, text)


def local(host: int) -> Endpoint:
    return Endpoint(ip(f"10.244.0.{host}"), 8080, local=True)


def remote(host: int) -> Endpoint:
    return Endpoint(ip(f"10.244.1.{host}"), 8080)


def service(name: str = "web", number: int = 10, **more: Any) -> Service:
    endpoints = more.pop("endpoints", (local(10),))
    return Service(
        name=f"a/{name}:p",
        cluster_ip=ip(f"10.96.0.{number}"),
        port=80,
        endpoints=endpoints,
        **more,
    )


def unchanged(text: str) -> str:
    return text


def with_filter(*, forward: str = "ACCEPT", inward: str = "ACCEPT", rules: str = "") -> Callable[[str], str]:
    """Return an edit that sets other policies, and adds rules after kube-proxy's in FORWARD."""

    def edit(text: str) -> str:
        text = text.replace(":INPUT ACCEPT", f":INPUT {inward}", 1).replace(
            ":FORWARD ACCEPT", f":FORWARD {forward}", 1
        )
        return text.replace("-A OUTPUT", f"{rules}-A OUTPUT", 1)

    return edit


def with_mangle(rules: str) -> Callable[[str], str]:
    """Return an edit that adds rules of another component to the mangle table."""
    return lambda text: text.replace("COMMIT\n*nat", f"{rules}COMMIT\n*nat", 1)


def with_nat(chain: str, rules: str) -> Callable[[str], str]:
    """Return an edit that adds a chain and rules of another component to the nat table, before
    kube-proxy's.
    """

    def edit(text: str) -> str:
        before, nat = text.split("*nat\n")
        nat = nat.replace(":KUBE", f":{chain} - [0:0]\n:KUBE", 1).replace(
            "-A PREROUTING", f"{rules}-A PREROUTING", 1
        )
        return f"{before}*nat\n{nat}"

    return edit


@dataclass(frozen=True, kw_only=True)
class Made:
    """One case: ``subjects`` are the subjects of the difference, ``also`` the other differences that show
    with it.
    """

    services: tuple[Service, ...]
    subjects: frozenset[str]
    version: Version = (1, 30)
    edit: Callable[[str], str] = unchanged
    also: frozenset[str] = frozenset()
    addresses: dict[str, list[str]] = field(default_factory=dict)
    objects: str | None = None
    meta: dict[str, object] = field(default_factory=dict)

    def node(self) -> Node:
        data = {**NODE, "interfaces": {**NODE["interfaces"], **self.addresses}}  # type: ignore[dict-item]
        return node_from_json(json.dumps(data), name="node")

    def inputs(self) -> tuple[Snapshot, AssessOptions]:
        pods = Interval.prefix(ip("10.244.0.0"), 16, 32)
        cluster = Cluster(
            family=Family.IP, services=self.services, pods=pods, node_ip=ip("192.168.0.2"), node=self.node()
        )
        text = self.edit(kube_proxy_rules(cluster))
        ruleset = read_ruleset(text.encode(), name="made")
        snapshot = Snapshot(
            name="made", rules={(Variant.LEGACY, Family.IP): ruleset}, node=self.node(), meta=self.meta
        )
        return snapshot, AssessOptions(version=self.version, objects=self.objects)


def _objects(name: str, number: int, ranges: list[str]) -> str:
    spec = {
        "type": "LoadBalancer",
        "clusterIP": f"10.96.0.{number}",
        "clusterIPs": [f"10.96.0.{number}"],
        "loadBalancerSourceRanges": ranges,
        "ports": [{"name": "p", "port": 80, "protocol": "TCP"}],
    }
    item = {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "a"},
        "spec": spec,
        "status": {"loadBalancer": {"ingress": [{"ip": OUTSIDE}]}},
    }
    return json.dumps({"kind": "List", "items": [item]})


_TWO = (service(), service("db", 11, endpoints=(local(11),)))
_WIDE = (*_TWO, service("dns", 200, endpoints=(local(53),)))
"""Services far enough apart that the service range between them has unused addresses."""

_MARKED = with_mangle("-A FORWARD -m mark --mark 0x4000/0x4000 -j DROP\n")
_HOST_PORT = (
    "-A PREROUTING -m addrtype --dst-type LOCAL -j HOSTPORTS\n"
    "{mark}-A HOSTPORTS -p tcp -m tcp --dport 8081 -j DNAT --to-destination 10.244.0.50:80\n"
)
_NOBODY = service("none", 12, endpoints=())

MADE: dict[str, Made] = {
    "K04": Made(
        services=(
            service(health_check_port=32000, load_balancer_ips=(ip(OUTSIDE),), external_local=True),
            _TWO[1],
        ),
        edit=with_filter(forward="DROP", inward="DROP"),
        subjects=frozenset({"a/web:p", "a/web:p, health check", "a/db:p"}),
    ),
    "K07": Made(services=_WIDE, version=(1, 33), subjects=frozenset({"the service range"})),
    "K08": Made(services=_TWO, meta={"kernel": {"release": "5.4.0"}}, subjects=frozenset({"Linux"})),
    "K10": Made(
        services=_TWO,
        edit=with_nat(
            "HOSTPORTS",
            _HOST_PORT.format(
                mark="-A HOSTPORTS -s 10.244.0.0/16 -p tcp -m tcp --dport 8081 -j KUBE-MARK-MASQ\n"
            ),
        ),
        subjects=frozenset({"forwarded traffic"}),
    ),
    "K11": Made(
        services=_TWO,
        edit=with_filter(rules="-A FORWARD -p tcp -m tcp --dport 8080 -j DROP\n"),
        subjects=frozenset({"a/web:p", "a/db:p"}),
    ),
    "K14": Made(
        services=(*_TWO, service("none", 12, endpoints=(), load_balancer_ips=(ip(OUTSIDE),))),
        objects=_objects("none", 12, ["192.0.2.0/24"]),
        subjects=frozenset({"a/none:p"}),
        also=frozenset({"K15", "K16"}),
    ),
    "K16": Made(
        services=(*_TWO, service("none", 12, endpoints=(), external_ips=(ip(OUTSIDE),))),
        subjects=frozenset({"a/none:p"}),
    ),
    "K18": Made(
        services=(*_TWO, _NOBODY), addresses={"dummy0": ["10.96.0.12/32"]}, subjects=frozenset({"a/none:p"})
    ),
    "K19": Made(
        services=(
            service(node_port=30080),
            Service(
                name="a/far:p",
                cluster_ip=ip("10.96.0.13"),
                port=30080,
                endpoints=(remote(13),),
                external_ips=(ip("192.168.0.2"),),
                external_local=True,
            ),
        ),
        subjects=frozenset({"a/far:p, over a/web:p"}),
        also=frozenset({"K01", "K02", "K24"}),
    ),
    "K20": Made(
        services=(service(endpoints=(remote(10),)), _TWO[1]), version=(1, 36), subjects=frozenset({"a/web:p"})
    ),
    "K21": Made(
        services=(service(endpoints=(Endpoint(ip("10.244.0.50"), 80, local=True),)), _TWO[1]),
        version=(1, 36),
        edit=with_nat("HOSTPORTS", _HOST_PORT.format(mark="")),
        subjects=frozenset({"another component's translation"}),
    ),
    "K22": Made(
        services=_TWO,
        version=(1, 36),
        edit=_MARKED,
        subjects=frozenset({"a/web:p", "a/db:p"}),
        also=frozenset({"K23"}),
    ),
    "K23": Made(
        services=_TWO,
        version=(1, 36),
        edit=_MARKED,
        subjects=frozenset({"a/web:p", "a/db:p"}),
        also=frozenset({"K22"}),
    ),
    "K29": Made(
        services=tuple(replace(s, external_ips=(ip(OUTSIDE),)) for s in _TWO),
        subjects=frozenset({"a/db:p and a/web:p"}),
    ),
    "K33": Made(
        services=(*_TWO, _NOBODY),
        version=(1, 34),
        edit=with_filter(forward="DROP"),
        subjects=frozenset({"a/none:p"}),
        also=frozenset({"K04", "K07"}),
    ),
    "K41": Made(
        services=(
            *_TWO,
            service(
                "far", 13, endpoints=(remote(13),), load_balancer_ips=(ip(OUTSIDE),), external_local=True
            ),
        ),
        version=(1, 34),
        subjects=frozenset({"a/far:p"}),
        also=frozenset({"K07"}),
    ),
}
"""Cases by the id of the difference that they show."""

_NODE_PORTS = frozenset(
    {
        "edge/local-only:quic",
        "edge/sticky-local:mqtt",
        "telco/diameter:sctp",
        "telco/diameter:tcp",
        "telco/diameter:udp",
        "web/api:grpc",
        "web/frontend:http",
        "web/frontend:https",
        "web/shop:https",
    }
)
_CLUSTER_IPS = frozenset(
    {
        "data/postgres:pg",
        "data/redis:redis",
        "default/kubernetes:https",
        "edge/local-only:quic",
        "edge/sticky-local:mqtt",
        "kube-system/kube-dns:dns, kube-system/kube-dns:dns-tcp, kube-system/kube-dns:metrics",
        "legacy/erp:erp",
        "mon/node-exporter:metrics",
        "mon/remote-agent:agent",
        "telco/diameter:sctp, telco/diameter:tcp, telco/diameter:udp",
        "web/api:grpc",
        "web/frontend:http, web/frontend:https",
        "web/shop:https",
    }
)

HERE: dict[str, frozenset[str]] = {
    "K01": _NODE_PORTS,
    "K02": _NODE_PORTS,
    "K05": frozenset({"every forwarded packet"}),
    "K06": _CLUSTER_IPS,
    "K13": _CLUSTER_IPS,
    "K15": frozenset({"web/shop:https"}),
    "K17": frozenset({"data/postgres:pg", "edge/local-only:quic"}),
    "K24": frozenset({"edge/local-only:quic"}),
    "K25": frozenset({"data/redis:redis", "edge/sticky-local:mqtt"}),
    "K31": frozenset({"data/postgres:pg"}),
    "K32": frozenset({"the node's own sockets at 127.0.0.0/8"}),
}
"""The differences that rules of a real kube-proxy 1.30 show on their own node."""
