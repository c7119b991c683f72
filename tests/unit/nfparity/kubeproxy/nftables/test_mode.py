"""The text of kube-proxy's nftables mode, against what a kube-proxy gave to nft for the same objects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from backends.model.node import Node, node_from_json
from nfparity.kubeproxy import KubeProxyState, Mode, read_objects, recover
from nfparity.kubeproxy.nftables import LAYOUTS, InferredConfig, infer_config, nftables_mode
from translate.errors import InputError
from translate.ir import Family, Interval, parse_address
from translate.read import read_ruleset

REAL = Path(__file__).resolve().parents[4] / "corpus/rulesets/kube-real"
OF_1_30 = InferredConfig(node_port_ips=(parse_address(Family.IP, "192.168.0.2"),))
"""The configuration of the kube-proxy that gave the text, whose node was not that of node.json."""

_COMMAND = re.compile(r"(add|delete|flush) (table|chain|set|map|element|rule) (ip6?) kube-proxy ?(\S*) ?(.*)")


@dataclass
class Loaded:
    """The result of a script: declarations and elements by name, rules in their order."""

    declared: dict[str, str] = field(default_factory=dict)
    elements: dict[str, set[str]] = field(default_factory=dict)
    rules: dict[str, list[str]] = field(default_factory=dict)


def loaded(text: str) -> Loaded:
    found = Loaded()
    families = set()
    for line in text.splitlines():
        match = _COMMAND.fullmatch(line)
        assert match is not None, line
        verb, kind, family, name, rest = match.groups()
        families.add(family)
        plain = " ".join(rest.split())
        if verb == "delete":
            del found.declared[f"{kind} {name}"]
        elif verb == "flush":
            found.rules.pop(name, None)
            found.elements.pop(name, None)
        elif kind == "rule":
            found.rules.setdefault(name, []).append(plain)
        elif kind == "element":
            found.elements.setdefault(name, set()).add(plain)
        else:
            found.declared[f"{kind} {name}"] = plain
    assert len(families) == 1
    return found


def real(family: Family = Family.IP) -> KubeProxyState:
    file = "rules.iptables-save" if family is Family.IP else "rules.ip6tables-save"
    return recover(read_ruleset((REAL / file).read_bytes(), name=file))


def node(family: Family = Family.IP) -> Node:
    file = "node.json" if family is Family.IP else "node6.json"
    return node_from_json((REAL / file).read_text(), name=file)


def test_1_30_is_what_a_kube_proxy_of_1_30_loads() -> None:
    ours = loaded(nftables_mode(real(), "1.30", config=OF_1_30).text)
    theirs = loaded((REAL / "realistic.nft-input").read_text())
    assert len(theirs.rules) == 80
    assert ours == theirs


def test_names_of_services_come_from_objects_as_well_as_from_comments() -> None:
    text = re.sub(r' -m comment --comment "[^"]*"', "", (REAL / "rules.iptables-save").read_text())
    objects = read_objects((REAL / "objects.json").read_text(), name="objects.json")
    state = recover(read_ruleset(text.encode(), name="rules"), objects)
    theirs = loaded((REAL / "realistic.nft-input").read_text())
    assert loaded(nftables_mode(state, "1.30", config=OF_1_30).text) == theirs


def chains_named(text: str) -> set[str]:
    return set(re.findall(r"(?:goto|jump) ([^\s}]+)", text))


@pytest.mark.parametrize("version", tuple(LAYOUTS))
@pytest.mark.parametrize("family", tuple(Family))
@pytest.mark.parametrize("named", [True, False])
def test_nothing_is_named_that_is_not_there(family: Family, version: str, named: bool) -> None:
    state = real(family)
    if not named:
        file = "rules.iptables-save" if family is Family.IP else "rules.ip6tables-save"
        text = re.sub(r' -m comment --comment "[^"]*"', "", (REAL / file).read_text())
        state = recover(read_ruleset(text.encode(), name=file))
    text = nftables_mode(state, version, node(family)).text
    made = loaded(text)
    assert chains_named(text) <= {name.removeprefix("chain ") for name in made.declared}
    assert set(made.elements) <= {name.partition(" ")[2] for name in made.declared}
    assert {s for s in re.findall(r"@([^\s}]+)", text) if not s.startswith("no-endpoint")} <= {
        name.partition(" ")[2] for name in made.declared
    }
    assert all(name.partition(" ")[2] in made.rules for name in made.declared if name.startswith("chain "))


def in_version(version: str, family: Family = Family.IP) -> Loaded:
    return loaded(nftables_mode(real(family), version, node(family)).text)


def priorities(made: Mapping[str, str]) -> dict[str, int]:
    found = {}
    for name, text in made.items():
        match = re.search(r"type filter hook \w+ priority (-?\d+)", text)
        if match is not None:
            found[name.removeprefix("chain ")] = int(match[1])
    return found


def test_from_1_34_on_endpoints_are_checked_behind_dnat() -> None:
    """K24 and K34: pods reach a load balancer whose endpoints are all elsewhere."""
    assert set(priorities(in_version("1.33").declared).values()) == {-110, -90}
    late = priorities(in_version("1.34").declared)
    assert late["filter-forward"] == late["filter-output"] == late["filter-input"] == 0
    assert late["filter-prerouting-pre-dnat"] == late["filter-output-pre-dnat"] == -110
    jumps = in_version("1.34").rules
    assert jumps["filter-output"] == [
        "ct state new jump service-endpoints-check",
        "ct state new jump cluster-ips-check",
    ]


def test_from_1_36_on_the_mark_is_set_in_place_and_hairpin_is_a_set() -> None:
    """K20, K22, K23."""
    made = in_version("1.36")
    assert "chain mark-for-masquerade" not in made.declared
    assert made.rules["services"][0] == (
        "ip daddr @cluster-ips ip saddr != 10.244.0.0/16 mark set mark or 0x00004000 "
        'comment "masquerade clusterIP traffic from outside cluster"'
    )
    assert made.rules["masquerading"][1].startswith("ct status dnat ip saddr . ip daddr")
    assert "{ 10.244.0.90 . 10.244.0.90 . tcp . 1883 }" in made.elements["hairpin-connections"]
    assert "{ 10.244.1.92 . 10.244.1.92 . tcp . 1883 }" not in made.elements["hairpin-connections"]
    with_chains = {name for name in made.declared if name.startswith("chain endpoint-")}
    assert with_chains
    assert {name.partition("-")[2].partition("-")[2].partition("/")[0] for name in with_chains} == {
        "edge",
        "data",
    }
    dns = next(v for k, v in made.rules.items() if k.startswith("service-") and k.endswith("/udp/dns"))
    assert dns == [
        "meta l4proto udp dnat ip addr . port to "
        "numgen random mod 2 map { 0 : 10.244.0.2 . 53 , 1 : 10.244.1.3 . 53 }"
    ]


def test_ipv6_is_written_with_its_own_words() -> None:
    made = in_version("1.36", Family.IP6)
    assert made.declared["set cluster-ips"].startswith("{ type ipv6_addr")
    api = next(v for k, v in made.rules.items() if k.startswith("local-") and k.endswith("/grpc"))
    assert api == ["meta l4proto tcp dnat to [fd00:10:244::1f]:9000"]
    old = in_version("1.30", Family.IP6)
    name = next(k for k in old.rules if k.startswith("endpoint-") and "/grpc__fd00.10.244..1f/9000" in k)
    assert old.rules[name][0] == "ip6 saddr fd00:10:244::1f jump mark-for-masquerade"


def test_what_is_assumed_is_said() -> None:
    notes = nftables_mode(real(), "1.33", node()).assumptions
    assert notes[0].startswith("1.33 is assumed to be")
    assert any("192.168.0.5" in n for n in notes)
    assert any("no rule shows whether 14 endpoints" in n for n in notes)
    assert any("ServiceCIDR" in n for n in notes)
    assert any(n.startswith("1 service has no endpoints") for n in notes)
    assert "KubeProxyNFTablesLocalhostNodePorts" in nftables_mode(real(), "1.37", node()).assumptions[0]
    told = recover(
        read_ruleset((REAL / "rules.iptables-save").read_bytes(), name="rules"),
        read_objects((REAL / "objects.json").read_text(), name="objects.json"),
    )
    cidr = Interval.prefix(parse_address(Family.IP, "10.96.0.0"), 12, 32)
    mode = nftables_mode(told, "1.36", config=infer_config(told, node(), service_cidrs=(cidr,)))
    assert mode.assumptions == (
        "--nodeport-addresses becomes its default, the node's primary address: 192.168.0.5",
    )
    drop = 'ip daddr { 10.96.0.0/12 } drop comment "Drop traffic to unallocated ClusterIPs"'
    assert loaded(mode.text).rules["cluster-ips-check"][1] == drop


def test_without_a_node_node_ports_answer_at_every_address() -> None:
    mode = nftables_mode(real(), "1.30")
    made = loaded(mode.text)
    assert made.rules["services"][1] == (
        "fib daddr type local ip daddr != 127.0.0.0/8 meta l4proto . th dport vmap @service-nodeports"
    )
    assert "set nodeport-ips" not in made.declared
    assert any("every local address" in n for n in mode.assumptions)


def test_listed_addresses_stay_but_for_localhost() -> None:
    text = (REAL / "rules.iptables-save").read_text()
    last = "-m addrtype --dst-type LOCAL -j KUBE-NODEPORTS"
    one, two = (f"-d {a}/32 -j KUBE-NODEPORTS" for a in ("127.0.0.1", "192.168.0.7"))
    state = recover(read_ruleset(text.replace(last, f"{one}\n-A KUBE-SERVICES {two}").encode(), name="rules"))
    made = loaded(nftables_mode(state, "1.30", node()).text)
    assert made.elements["nodeport-ips"] == {"{ 192.168.0.7 }"}


def test_masquerading_everything_asks_for_no_source() -> None:
    text = (REAL / "rules.iptables-save").read_text().replace("! -s 10.244.0.0/16 -d", "-d")
    state = recover(read_ruleset(text.encode(), name="rules"))
    old, new = (loaded(nftables_mode(state, v, node()).text) for v in ("1.30", "1.36"))
    dns = next(v for k, v in old.rules.items() if k.startswith("service-") and k.endswith("/udp/dns"))
    assert dns[0] == "ip daddr 10.96.0.10 udp dport 53 jump mark-for-masquerade"
    assert new.rules["services"][0].startswith("ip daddr @cluster-ips mark set mark or")
    # Pods still take the short way to a load balancer.
    assert any("ip saddr 10.244.0.0/16 goto service-" in r for rules in new.rules.values() for r in rules)


def test_a_service_whose_endpoints_no_rule_leads_to_is_only_refused() -> None:
    """A refusal alone: that there are endpoints elsewhere is known, and not one of them."""
    rule = "-A KUBE-EXTERNAL-SERVICES -p tcp -m addrtype --dst-type LOCAL -m tcp --dport 31000 -j DROP"
    text = (REAL / "rules.iptables-save").read_text().replace("COMMIT", f"{rule}\nCOMMIT", 1)
    state = recover(read_ruleset(text.encode(), name="rules"))
    made = loaded(nftables_mode(state, "1.30", node()).text)
    assert '{ tcp . 31000 comment "node port 31000/tcp" : drop }' in made.elements["no-endpoint-nodeports"]
    assert not any("31000" in e for e in made.elements["service-nodeports"])
    assert not any("unnamed" in name for name in made.declared)


@pytest.mark.parametrize("version", ["1.28", "1.38", "", "nine", "2"])
def test_other_versions_are_refused(version: str) -> None:
    with pytest.raises(InputError, match="unknown Kubernetes version"):
        nftables_mode(real(), version)


def test_a_patch_version_is_one_of_its_minor() -> None:
    assert nftables_mode(real(), "v1.36.2").version == "1.36"


def test_other_modes_are_refused() -> None:
    with pytest.raises(InputError, match="ipvs"):
        nftables_mode(KubeProxyState(family=Family.IP, mode=Mode.IPVS, endpoints_known=False), "1.30")
