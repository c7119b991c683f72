"""A kube-proxy's state recovered from its rules, against the API objects that it was given."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from nfparity.kubeproxy import (
    ApiObjects,
    Endpoint,
    KubeProxyState,
    Mode,
    Purpose,
    Service,
    read_objects,
    recover,
)
from translate.ir import Family, Interval, Ruleset, parse_address
from translate.read import read_ruleset

REAL = Path(__file__).resolve().parents[3] / "corpus/rulesets/kube-real"
KIND = REAL.parent / "kind-node/rules.iptables-save"
FILES = {Family.IP: "rules.iptables-save", Family.IP6: "rules.ip6tables-save"}
PODS = {
    Family.IP: Interval.prefix(parse_address(Family.IP, "10.244.0.0"), 16, 32),
    Family.IP6: Interval.prefix(parse_address(Family.IP6, "fd00:10:244::"), 56, 128),
}


def objects() -> ApiObjects:
    return read_objects((REAL / "objects.json").read_text(), name="objects.json")


def real(family: Family, *, comments: bool = True) -> Ruleset:
    text = (REAL / FILES[family]).read_text()
    if not comments:
        text = re.sub(r' -m comment --comment "[^"]*"', "", text)
        assert "frontend" not in text
    return read_ruleset(text.encode(), name=FILES[family])


def shown(told: Service) -> Service:
    """Return the facts about a service that rules can show: its endpoints if a rule leads to them."""
    near = tuple(endpoint for endpoint in told.endpoints if endpoint.local)
    everywhere = not told.internal_local or told.external
    return replace(
        told,
        endpoints=told.endpoints if everywhere else near,
        endpoints_elsewhere=bool(told.endpoints) and not everywhere and not near,
    )


def known(seen: Service, told: Service) -> Service:
    """Return the true facts as far as rules show them: None, and unplaced endpoints, for the rest."""
    places = {(e.address, e.port): e.local for e in seen.endpoints}
    endpoints = tuple(
        Endpoint(e.address, e.port, None) if places.get((e.address, e.port), e.local) is None else e
        for e in told.endpoints
    )
    return replace(
        told,
        endpoints=endpoints,
        affinity=None if seen.affinity is None else told.affinity,
        external_local=None if seen.external_local is None else told.external_local,
        internal_local=None if seen.internal_local is None else told.internal_local,
        source_ranges=None if seen.source_ranges is None else told.source_ranges,
    )


def in_order(services: tuple[Service, ...]) -> list[Service]:
    found = [
        replace(s, endpoints=tuple(sorted(s.endpoints, key=lambda e: (e.address, e.port)))) for s in services
    ]
    return sorted(found, key=lambda s: (s.name or "", s.protocol))


@pytest.mark.parametrize("family", tuple(Family))
def test_what_was_told_is_recovered_from_the_rules_alone(family: Family) -> None:
    state = recover(real(family))
    told = [shown(s) for s in objects().of(family)]
    seen = in_order(state.services)
    assert [s.name for s in seen] == [s.name for s in told]
    assert seen == [known(s, t) for s, t in zip(seen, told, strict=True)]
    # Without endpoints, no rule tells of affinity and policies; without local ones, not of affinity.
    unknown = {s.name for s in seen if s.affinity is None}
    without = {"data/postgres:pg", "mon/remote-agent:agent"}
    assert unknown == (without if family is Family.IP else set())
    assert all(s.internal_local is not None for s in seen if s.name != "data/postgres:pg")
    assert state.mode is Mode.IPTABLES
    assert state.pods == PODS[family]
    assert not state.masquerade_all
    assert state.mark == 0x4000
    assert state.fully_random
    assert state.node_port_addresses is None
    assert state.localhost_node_ports == (family is Family.IP)
    assert not state.remainder


@pytest.mark.parametrize("comments", [True, False])
@pytest.mark.parametrize("family", tuple(Family))
def test_with_the_objects_nothing_is_unknown(family: Family, comments: bool) -> None:
    state = recover(real(family, comments=comments), objects())
    assert in_order(state.services) == [shown(s) for s in objects().of(family)]
    assert not state.remainder


@pytest.mark.parametrize("family", tuple(Family))
def test_without_names_services_are_known_by_address(family: Family) -> None:
    state = recover(real(family, comments=False))
    told = {(s.protocol, s.cluster_ip, s.port): s for s in objects().of(family)}
    seen = {(s.protocol, s.cluster_ip, s.port): s for s in state.services if s.cluster_ip is not None}
    assert seen.keys() == told.keys()
    assert all(s.name is None for s in state.services)
    for place, service in seen.items():
        full = told[place]
        if service.hash is not None:
            assert (service.node_port, service.external_addresses) == (
                full.node_port,
                full.external_addresses,
            )
            assert service.source_ranges == full.source_ranges
            assert service.external_local == full.external_local
    # Nothing holds the two rules of a service without endpoints together.
    parts = [s for s in state.services if s.cluster_ip is None]
    assert [(s.node_port, s.label(family)) for s in parts] == (
        [(30432, "node port 30432/tcp")] if family is Family.IP else []
    )
    dns = next(s for s in state.services if s.port == 53 and s.protocol == "udp")
    assert dns.label(family) == ("10.96.0.10:53/udp" if family is Family.IP else "[fd00:10:96::a]:53/udp")


@pytest.mark.parametrize("file", [REAL / FILES[Family.IP], REAL / FILES[Family.IP6], KIND])
def test_every_rule_is_understood_once_with_its_line(file: Path) -> None:
    ruleset = read_ruleset(file.read_bytes(), name=file.name)
    state = recover(ruleset)
    rules = [
        r.origin.line
        for t in ruleset.tables
        for c in t.chains
        for r in c.rules
        if c.name.startswith("KUBE-") or "KUBE-" in r.origin.text
    ]
    lines = [line.origin.line for line in (*state.lines, *(n for s in state.services for n in s.lines))]
    assert sorted(lines) == sorted(rules)
    assert not state.remainder


def test_lines_say_what_they_are_for() -> None:
    state = recover(real(Family.IP))
    shop = next(s for s in state.services if s.name == "web/shop:https")
    balancers = tuple(shop.lines_for(Purpose.LOAD_BALANCER_IP))
    assert [line.address for line in balancers] == list(shop.load_balancer_ips)
    assert all("loadbalancer IP" in line.origin.text for line in balancers)
    assert len(tuple(shop.lines_for(Purpose.SOURCE_RANGE))) == 5
    assert {line.chain for line in shop.lines_for(Purpose.OUT_OF_RANGE)} == {
        "KUBE-PROXY-FIREWALL",
        "KUBE-FW-7BT4E3NO6YWJCX3B",
    }
    assert all(line.packets is None for line in balancers)
    (invalid,) = state.lines_for(Purpose.DROP_INVALID)
    assert "INVALID" in invalid.origin.text


def recovered(text: str) -> KubeProxyState:
    return recover(read_ruleset(text.encode(), name="rules", family=Family.IP))


OLD = (REAL.parent / "kube-xlb/rules.iptables-save").read_text()


def test_a_kube_proxy_before_1_24_marks_and_drops_elsewhere() -> None:
    state = recovered(OLD)
    (service,) = state.services
    a, b = parse_address(Family.IP, "10.0.1.2"), parse_address(Family.IP, "10.0.2.2")
    assert service.name == "a/b:c"
    assert service.external_local
    assert service.internal_local is False
    assert service.endpoints == (Endpoint(a, 80, local=False), Endpoint(b, 80, local=True))
    assert service.source_ranges == (Interval.prefix(parse_address(Family.IP, "192.0.2.0"), 24, 32),)
    assert service.node_port == 30080
    assert state.mark == 0x10000
    assert not state.fully_random
    assert state.pods == Interval.prefix(parse_address(Family.IP, "10.0.0.0"), 16, 32)
    assert not state.remainder
    counted = {purpose: [line.packets for line in service.lines_for(purpose)] for purpose in Purpose}
    assert sum(filter(None, counted[Purpose.NODE_PORT])) == 4
    assert sum(filter(None, counted[Purpose.CLUSTER_IP])) == 3
    assert sum(filter(None, counted[Purpose.OUT_OF_RANGE])) == 2


@pytest.mark.parametrize(
    "rule",
    [
        "-A KUBE-SERVICES -d 10.96.0.1/32 -j ACCEPT",
        "-A KUBE-SERVICES -s 10.0.0.9/32 -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j KUBE-MARK-MASQ",
        "-A KUBE-SERVICES -d 10.96.0.9/32 -p tcp -m tcp --dport 81 -j KUBE-SVC-XGLOHA7QRQ3V22RZ",
        "-A KUBE-SVC-XGLOHA7QRQ3V22RZ -s 10.0.0.9/32 -j KUBE-SEP-BBBBBBBBBBBBBBBB",
        "-A KUBE-SVC-XGLOHA7QRQ3V22RZ -d 10.96.0.7/32 -p tcp -m tcp --dport 80 -j KUBE-MARK-MASQ",
        "-A KUBE-SVC-XGLOHA7QRQ3V22RZ ! -s 10.9.0.9/32 -d 10.96.0.1/32 -p tcp --dport 90 -j KUBE-MARK-MASQ",
        "-A KUBE-FW-XGLOHA7QRQ3V22RZ -m iprange --src-range 10.0.0.1-10.0.0.9 -j KUBE-XLB-XGLOHA7QRQ3V22RZ",
        "-A KUBE-SEP-AAAAAAAAAAAAAAAA -p tcp -m tcp -j DNAT --to-destination 10.0.1.9:80",
        "-A KUBE-NODEPORTS -p udp -m udp --dport 30081 -j KUBE-XLB-XGLOHA7QRQ3V22RZ",
        "-A KUBE-POSTROUTING -s 10.0.0.0/8 -j MASQUERADE",
        "-A KUBE-MARK-MASQ -j RETURN",
        "-A KUBE-FW-XGLOHA7QRQ3V22RZ -p tcp -j ACCEPT",
    ],
)
def test_a_rule_of_somebody_else_is_listed_and_changes_nothing(rule: str) -> None:
    before, state = recovered(OLD), recovered(OLD.replace("COMMIT\n", f"[0:0] {rule}\nCOMMIT\n"))
    assert [r.origin.text for r in state.remainder] == [f"[0:0] {rule}"]
    assert state.services == before.services
    assert replace(state, lines=(), remainder=()) == replace(before, lines=())


def test_without_a_kube_proxy_there_is_nothing() -> None:
    state = recovered("*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p tcp -j ACCEPT\nCOMMIT\n")
    assert state == KubeProxyState(family=Family.IP, mode=Mode.NONE)


def changed(old: str, new: str) -> KubeProxyState:
    text = (REAL / FILES[Family.IP]).read_text()
    assert old in text
    return recovered(text.replace(old, new))


def test_listed_node_port_addresses_are_seen() -> None:
    last = "-m addrtype --dst-type LOCAL -j KUBE-NODEPORTS"
    state = changed(last, "-d 192.168.0.2/32 -j KUBE-NODEPORTS")
    assert state.node_port_addresses == (parse_address(Family.IP, "192.168.0.2"),)
    assert not state.localhost_node_ports
    assert not changed(last, f"! -d 127.0.0.0/8 {last}").localhost_node_ports


def test_masquerading_everything_is_seen() -> None:
    state = changed("! -s 10.244.0.0/16 -d", "-d")
    assert state.masquerade_all
    # Rules of policy Local still tell traffic of pods.
    assert state.pods == PODS[Family.IP]
    assert not state.remainder
    assert not state.notes


def test_an_interface_can_tell_pods_from_others() -> None:
    state = changed("! -s 10.244.0.0/16 -d", "! -i cni+ -d")
    assert str(state.pods) == "Name(text='cni', wildcard=True)"


def test_a_terminating_endpoint_serves_only_what_may_not_leave() -> None:
    """Local traffic goes to a terminating endpoint if no ready one is on the node."""
    rule = '-A KUBE-SVC-I5LIIXQNOWAPVLTF -m comment --comment "web/api:grpc -> 10.244.0.31:9000"'
    state = changed(rule, f"# {rule}")
    api = next(s for s in state.services if s.name == "web/api:grpc")
    assert [(e.local, e.draining) for e in api.endpoints] == [(False, False), (False, False), (True, True)]
    assert len(api.cluster_endpoints) == 2


def test_a_range_of_every_address_is_no_range() -> None:
    """iptables does not print ``-s 0.0.0.0/0``."""
    text = OLD.replace("-s 192.0.2.0/24 -m comment", "-m comment")
    (service,) = recovered(text).services
    assert service.source_ranges == ()


def test_the_api_servers_own_slice_names_no_node() -> None:
    """Its endpoint 192.168.0.2 is this node, as mon/node-exporter shows; kube-proxy does not count it."""
    state = recover(real(Family.IP))
    here = parse_address(Family.IP, "192.168.0.2")
    found = {s.name: e.local for s in state.services for e in s.endpoints if e.address == here}
    assert found == {"default/kubernetes:https": False, "mon/node-exporter:metrics": True}


@pytest.mark.parametrize("family", tuple(Family))
def test_what_counts_packets_does_not_hide_a_rule(family: Family) -> None:
    """Rules with ``-m nfacct``, which later versions count some of their drops and node ports with."""
    text = (REAL / FILES[family]).read_text()
    counted = re.sub(
        r"(--ctstate INVALID)", r"\1 -m nfacct --nfacct-name ct_state_invalid_dropped_pkts", text
    )
    counted = re.sub(r"(DNAT) -j DROP", r"\1 -m nfacct --nfacct-name localnet -j DROP", counted)
    port = '-A KUBE-NODEPORTS -p tcp -m comment --comment "web/frontend:http" -m tcp --dport 30080'
    target = "-j KUBE-EXT-XQW6G4JP7X6Y57U2"
    assert f"{port} {target}" in counted
    local = f"{port} -m nfacct --nfacct-name localhost_nps_accepted_pkts {target}"
    if family is Family.IP:
        local = local.replace("KUBE-NODEPORTS -p", "KUBE-NODEPORTS -d 127.0.0.0/8 -p")
        counted = counted.replace(f"{port} {target}", f"{local}\n{port} {target}")
    state = recover(read_ruleset(counted.encode(), name="rules", family=family))
    assert not state.remainder
    assert len(tuple(state.lines_for(Purpose.DROP_INVALID))) == 1
    frontend = next(s for s in state.services if s.name == "web/frontend:http")
    assert frontend.node_port == 30080
    assert len(tuple(frontend.lines_for(Purpose.LOCALHOST_NODE_PORT))) == (family is Family.IP)


def test_a_local_chain_of_1_24_may_drop() -> None:
    rule = "-A KUBE-SVL-7SUXT5L37G6FSE3K -m comment --comment"
    one = f'{rule} "mon/node-exporter:metrics -> 192.168.0.2:9100" -j KUBE-SEP-LOATMBBXZCZ7PFVS'
    text = (REAL / FILES[Family.IP]).read_text()
    assert one in text
    none = text.replace(one, f'{rule} "mon/node-exporter:metrics has no local endpoints" -j KUBE-MARK-DROP')
    none = none.replace(":KUBE-MARK-MASQ", ":KUBE-MARK-DROP - [0:0]\n:KUBE-MARK-MASQ")
    state = recovered(none)
    exporter = next(s for s in state.services if s.name == "mon/node-exporter:metrics")
    assert (exporter.endpoints, exporter.endpoints_elsewhere, exporter.internal_local) == ((), True, True)
    # The endpoint's own chain is left: nothing leads to it any more.
    assert {r.chain for r in state.remainder} == {"KUBE-SEP-LOATMBBXZCZ7PFVS"}


@pytest.mark.parametrize("name", ["affinity", "aws-vpc-cni", "flannel"])
def test_names_that_are_no_hashes_do(name: str) -> None:
    """Dumps by hand, and dumps that were made anonymous."""
    text = (REAL.parent / name / "rules.iptables-save").read_bytes()
    state = recover(read_ruleset(text, name=name))
    (service,) = state.services
    assert len(service.endpoints) >= 2
    assert {r.chain for r in state.remainder} <= {"KUBE-SERVICES"}
