"""Services of a kube-proxy in ipvs mode are recovered from its ipsets and virtual services."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.model.ipvs import read_table
from nfparity.kubeproxy import KubeProxyState, Mode, Service, recover
from nfparity.kubeproxy.objects import read_objects
from translate.ir import Family, format_address, parse_address
from translate.read import read_ipsets, read_ruleset, with_sets

RULESETS = Path(__file__).resolve().parents[4] / "corpus/rulesets"


@pytest.mark.parametrize(
    ("folder", "file", "family"),
    [
        ("kube-ipvs", "rules.iptables-save", Family.IP),
        ("kube-ipvs6", "rules.ip6tables-save", Family.IP6),
    ],
)
def test_services_are_those_of_the_sets(folder: str, file: str, family: Family) -> None:
    ruleset = read_ruleset((RULESETS / folder / file).read_bytes(), name=file)
    alone = recover(ruleset)
    assert alone.mode is Mode.IPVS
    assert not alone.services
    assert len(alone.notes) == 2
    assert alone.remainder
    sets = read_ipsets((RULESETS / folder / "ipset-save").read_bytes(), name="ipset-save")
    state = recover(with_sets(ruleset, sets))
    assert len(state.notes) == 1
    assert state.mark == 0x4000
    assert any(s.cluster_ip is not None for s in state.services)
    assert any(s.load_balancer_ips for s in state.services)
    assert all(s.name is None and not s.endpoints for s in state.services)
    assert state.family is family


def address(text: str) -> int:
    return parse_address(Family.IP, text)


def recovered(rules: str = "", sets: str = "", virtual: str = "", objects: str = "") -> KubeProxyState:
    """Return the state of the corpus, with these lines added."""
    folder = RULESETS / "kube-ipvs"
    text = (folder / "rules.iptables-save").read_text().replace("COMMIT\n# Completed\n#", f"{rules}COMMIT\n#")
    ruleset = read_ruleset(text.encode(), name="rules")
    ipsets = read_ipsets(((folder / "ipset-save").read_text() + sets).encode(), name="ipset-save")
    table = read_table((folder / "ipvs-save").read_text() + virtual, name="ipvs-save")
    known = read_objects(objects, name="objects.json") if objects else None
    return recover(with_sets(ruleset, ipsets), known, ipvs=table)


def at(state: KubeProxyState, text: str, port: int, protocol: str = "tcp") -> Service:
    (service,) = (
        s
        for s in state.services
        if address(text) in (s.cluster_ip, *s.external_addresses) and (s.port, s.protocol) == (port, protocol)
    )
    return service


def test_endpoints_are_those_of_the_virtual_services() -> None:
    service = at(recovered(), "10.96.0.10", 53, "udp")
    endpoints = [(format_address(Family.IP, e.address), e.port, e.local) for e in service.endpoints]
    # KUBE-LOOP-BACK has the endpoints on the node.
    assert endpoints == [("10.244.1.4", 53, True), ("10.244.2.6", 53, False)]
    assert service.affinity == 0


def test_persistence_is_affinity() -> None:
    assert at(recovered(), "10.96.20.7", 80).affinity == 10800


def test_a_load_balancer_ip_has_its_source_ranges_and_policy() -> None:
    state = recovered()
    first, second = at(state, "203.0.113.10", 443), at(state, "203.0.113.11", 80)
    assert [r.prefix_length(32) for r in first.source_ranges or ()] == [32, 24, 25]
    assert (first.external_local, second.external_local) == (False, True)
    assert first.allows_node


def test_a_node_port_is_one_service_at_all_addresses_of_the_node() -> None:
    state = recovered()
    (service,) = (s for s in state.services if s.node_port == 30080)
    assert len(service.endpoints) == 2
    assert state.node_port_addresses == (address("10.244.1.1"), address("172.18.0.3"))
    assert state.health_check_ports == (32001,)


def test_pods_are_those_whose_traffic_is_not_masqueraded() -> None:
    state = recovered()
    assert str(state.pods) != "None"
    assert address("10.244.1.5") in state.pods  # type: ignore[operator]
    assert not state.masquerade_all
    assert state.endpoints_known
    assert not state.remainder


def test_a_server_of_weight_0_is_no_endpoint() -> None:
    ending = "-A -t 10.96.30.3:80 -s rr\n-a -t 10.96.30.3:80 -r 10.244.1.5:8080 -m -w 0\n"
    state = recovered(virtual=ending)
    assert not at(state, "10.96.30.3", 80).endpoints
    assert any("weight 0" in note for note in state.notes)


def test_a_virtual_service_of_another_program_is_named() -> None:
    state = recovered(virtual="-A -t 192.0.2.200:80 -s rr\n")
    assert any("192.0.2.200:80" in note and "1 virtual services" in note for note in state.notes)


def test_objects_join_the_addresses_of_a_service() -> None:
    objects = """{"services": [{"metadata": {"name": "web", "namespace": "shop"},
        "spec": {"clusterIP": "10.96.20.7", "externalTrafficPolicy": "Local",
                 "ports": [{"name": "http", "port": 80, "nodePort": 30080, "protocol": "TCP"}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.11"}]}}}]}"""
    state = recovered(objects=objects)
    (service,) = (s for s in state.services if s.name == "shop/web:http")
    assert service.cluster_ip == address("10.96.20.7")
    assert service.node_port == 30080
    assert service.load_balancer_ips == (address("203.0.113.11"),)


def test_cut_names_of_sets_are_recognised() -> None:
    folder = RULESETS / "kube-ipvs6"
    ruleset = read_ruleset((folder / "rules.ip6tables-save").read_bytes(), name="rules")
    sets = read_ipsets((folder / "ipset-save").read_bytes(), name="ipset-save")
    table = read_table((folder / "ipvs-save").read_bytes(), name="ipvs-save")
    state = recover(with_sets(ruleset, sets), ipvs=table)
    balancer = parse_address(Family.IP6, "2001:db8:cb::10")
    (service,) = (s for s in state.services if balancer in s.load_balancer_ips)
    assert [r.prefix_length(128) for r in service.source_ranges or ()] == [128, 48, 57]
    assert {
        s.node_port: s.external_local for s in state.services if s.protocol == "sctp" and s.node_port
    } == {
        30998: True,
        30999: False,
    }
