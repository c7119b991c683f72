"""The rules of a cluster, against the dump of a kube-proxy that was given the same objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backends.model.node import Interface, Node
from tests.lab.kuberules import Cluster, Endpoint, Protocol, Service, kube_proxy_rules
from tests.lab.kuberules.rules import probability
from translate.ir import Family, Interval, parse_address
from translate.read import read_ruleset

REAL = Path(__file__).resolve().parents[3] / "corpus/rulesets/kube-real"
THIS_NODE = "test-node"
PODS = {Family.IP: ("10.244.0.0", 16), Family.IP6: ("fd00:10:244::", 56)}
NODE_IP = {Family.IP: "192.168.0.2", Family.IP6: "2001:db8::1"}
BY_MAP = {"KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-EXTERNAL-SERVICES", "KUBE-PROXY-FIREWALL"}
"""Chains whose rules stand in the order of a Go map."""


def network(family: Family, text: str) -> Interval:
    address, _, length = text.partition("/")
    return Interval.prefix(parse_address(family, address), int(length), family.bits)


def of(family: Family, texts: list[str]) -> tuple[int, ...]:
    return tuple(parse_address(family, t) for t in texts if (":" in t) == (family is Family.IP6))


def services(family: Family, objects: dict[str, Any]) -> list[Service]:
    """The Services of the API objects, as kube-proxy splits them into ports and families."""
    found = []
    for one in objects["services"]:
        spec, meta = one["spec"], one["metadata"]
        cluster_ips = of(family, spec["clusterIPs"])
        if not cluster_ips:
            continue
        timeout = spec.get("sessionAffinityConfig", {}).get("clientIP", {}).get("timeoutSeconds", 0)
        balancers = [i["ip"] for i in one["status"]["loadBalancer"].get("ingress", [])]
        for port in spec["ports"]:
            found.append(
                Service(
                    name=f"{meta['namespace']}/{meta['name']}:{port['name']}",
                    cluster_ip=cluster_ips[0],
                    port=port["port"],
                    protocol=Protocol(port["protocol"].lower()),
                    endpoints=endpoints(family, objects, meta, port["name"]),
                    node_port=port.get("nodePort"),
                    external_ips=of(family, spec.get("externalIPs", [])),
                    load_balancer_ips=of(family, balancers),
                    source_ranges=tuple(network(family, t) for t in spec.get("loadBalancerSourceRanges", [])),
                    affinity=timeout,
                    external_local=spec.get("externalTrafficPolicy") == "Local",
                    internal_local=spec.get("internalTrafficPolicy") == "Local",
                    health_check_port=spec.get("healthCheckNodePort"),
                )
            )
    return found


def endpoints(
    family: Family, objects: dict[str, Any], service: dict[str, Any], port_name: str
) -> tuple[Endpoint, ...]:
    found = []
    for piece in objects["endpointslices"]:
        label = piece["metadata"]["labels"]["kubernetes.io/service-name"]
        same = label == service["name"] and piece["metadata"]["namespace"] == service["namespace"]
        if not same or (piece["addressType"] == "IPv6") != (family is Family.IP6):
            continue
        ports = [p["port"] for p in piece["ports"] if p["name"] == port_name]
        for endpoint in piece["endpoints"]:
            if endpoint.get("conditions", {}).get("ready") is not False:
                local = endpoint.get("nodeName") == THIS_NODE
                (address,) = of(family, endpoint["addresses"])
                found += [Endpoint(address, port, local=local) for port in ports]
    text_order = sorted(found, key=lambda e: e.text(family))
    return tuple(text_order)


def rules_of(text: str) -> dict[tuple[str, str], list[str]]:
    """The rules of each chain; sorted where their order means nothing."""
    found: dict[tuple[str, str], list[str]] = {}
    table = ""
    for line in text.splitlines():
        if line.startswith("*"):
            table = line
        elif line.startswith(":"):
            found[table, line[1:].split()[0]] = []
        elif line.startswith("-A"):
            found[table, line.split()[1]].append(line)
    for (table, chain), rules in found.items():
        if chain in BY_MAP or (table == "*filter" and chain == "KUBE-NODEPORTS"):
            rules.sort()
    return found


@pytest.mark.parametrize(("family", "dump"), [(Family.IP, "iptables-save"), (Family.IP6, "ip6tables-save")])
def test_the_rules_are_those_of_a_real_kube_proxy(family: Family, dump: str) -> None:
    objects = json.loads((REAL / "objects.json").read_text())
    address, length = PODS[family]
    cluster = Cluster(
        family=family,
        services=tuple(services(family, objects)),
        pods=Interval.prefix(parse_address(family, address), length, family.bits),
        node_ip=parse_address(family, NODE_IP[family]),
        node=Node((Interface("eth0"),)),
    )
    assert rules_of(kube_proxy_rules(cluster)) == rules_of((REAL / f"rules.{dump}").read_text())


def one_service(**more: Any) -> Cluster:
    service = Service(
        name="a/b:c", cluster_ip=0x0A600001, port=80, endpoints=(Endpoint(0x0AF40002, 8080, local=True),)
    )
    return Cluster(
        family=Family.IP,
        services=(service,),
        pods=Interval.prefix(0x0AF40000, 16, 32),
        node_ip=0xAC120002,
        node=Node((Interface("eth0"),)),
        **more,
    )


def test_large_clusters_have_no_comments_at_endpoints() -> None:
    text = kube_proxy_rules(one_service(comments=False))
    seps = [line for line in text.splitlines() if line.startswith("-A KUBE-SEP")]
    assert len(seps) == 2
    assert not any("comment" in line for line in seps)
    assert '--comment "a/b:c cluster IP"' in text
    assert '--comment "a/b:c' in "".join(
        line for line in kube_proxy_rules(one_service()).splitlines() if line.startswith("-A KUBE-SEP")
    )


def test_options_of_kube_proxy() -> None:
    text = kube_proxy_rules(one_service(masquerade_all=True, localhost_node_ports=False))
    chain = one_service().services[0].chain("SVC")
    first = next(line for line in text.splitlines() if line.startswith(f"-A {chain}"))
    assert first.startswith(f"-A {chain} -d 10.96.0.1/32")
    assert first.endswith("-j KUBE-MARK-MASQ")
    (last,) = [line for line in text.splitlines() if line.endswith("-j KUBE-NODEPORTS") and "LOCAL" in line]
    assert "! -d 127.0.0.0/8" in last


@pytest.mark.parametrize(
    ("ways", "text"), [(2, "0.50000000000"), (3, "0.33333333349"), (7, "0.14285714272"), (1, "1.00000000000")]
)
def test_probabilities_are_rounded_as_in_dumps(ways: int, text: str) -> None:
    assert probability(ways) == text


def test_what_is_written_can_be_read() -> None:
    ruleset = read_ruleset(
        kube_proxy_rules(one_service(masquerade_agent=True)).encode(), name="rules.iptables-save"
    )
    assert ruleset.family is Family.IP
    assert sum(len(c.rules) for t in ruleset.tables for c in t.chains) > 20
