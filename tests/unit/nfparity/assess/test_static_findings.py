"""Findings of a snapshot without packets."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from backends.model.node import Node
from nfparity.assess.catalogue import Decided, catalogue
from nfparity.assess.node.facts import Facts
from nfparity.assess.static_findings import static_findings
from nfparity.requires import kube_proxy_needs
from tests.lab.kuberules import Cluster, Endpoint, Service, kube_proxy_rules
from translate.ir import Family, Interval, parse_address


def meta(release: str, nft: str | None = None) -> dict[str, object]:
    """As ``meta.json`` has it."""
    return {"kernel": {"release": release}, "tools": {} if nft is None else {"nft": nft}}


@pytest.mark.parametrize(
    ("said", "subjects"),
    [
        ({}, []),
        (meta("5.13.0-generic", "nftables v1.0.1 (Fearless Fosdick #2)"), []),
        (meta("5.4.0-150-generic"), ["Linux"]),
        (meta("6.1.0", "nftables v0.9.8 (E.D.S.)"), ["nft"]),
        ({"kernel": 5}, []),
    ],
)
def test_an_old_kernel_or_nft(facts: Facts, said: dict[str, object], subjects: list[str]) -> None:
    found = list(static_findings(replace(facts, meta=said)))
    assert [one.subject for one in found] == subjects
    assert {one.k for one in found} <= {"K08"}


def cluster_text(*ports: int, node: Node) -> str:
    """Services with one external address, each at one of these ports."""
    address = parse_address(Family.IP, "203.0.113.9")
    services = tuple(
        Service(
            name=f"a/s{n}:p",
            cluster_ip=parse_address(Family.IP, f"10.96.0.{n}"),
            port=port,
            endpoints=(Endpoint(parse_address(Family.IP, f"10.244.0.{n + 10}"), 80, local=True),),
            external_ips=(address,),
        )
        for n, port in enumerate(ports, 1)
    )
    pods = Interval.prefix(parse_address(Family.IP, "10.244.0.0"), 16, 32)
    own = parse_address(Family.IP, "192.168.0.2")
    return kube_proxy_rules(Cluster(family=Family.IP, services=services, pods=pods, node_ip=own, node=node))


def test_two_services_with_one_address_and_port(made: Callable[..., Facts], node: Node) -> None:
    (one,) = static_findings(made(cluster_text(80, 80, node=node)))
    assert one.k == "K29"
    assert one.subject == "a/s1:p and a/s2:p"
    assert one.description == "both have 203.0.113.9:80/tcp"
    assert len(one.lines) == 2


def test_a_name_that_is_longer_than_a_comment(made: Callable[..., Facts], node: Node) -> None:
    text = cluster_text(80, node=node)
    for size, names in ((128, 0), (129, 1)):
        long = f"{'n' * 62}/{'s' * (size - 65)}:p"
        assert len(long) == size
        findings = list(static_findings(made(text.replace("a/s1:p", long))))
        assert [(one.k, one.subject) for one in findings] == [("K42", long)] * names
        assert all(f"has {size} bytes" in one.description and one.lines for one in findings)


@pytest.mark.parametrize(("interface", "subject"), [("cni0", "cni0"), ("azv+", "azv+")])
def test_pods_behind_an_interface(
    made: Callable[..., Facts], node: Node, interface: str, subject: str
) -> None:
    text = cluster_text(80, node=node).replace("! -s 10.244.0.0/16 ", f"! -i {interface} ")
    (finding,) = static_findings(made(text))
    assert (finding.k, finding.subject) == ("K43", subject)


def test_modules_that_the_node_lacks(facts: Facts) -> None:
    every = [need.module for need in kube_proxy_needs([facts.family])]
    assert not list(static_findings(replace(facts, meta={"modules": every})))
    some = [module for module in every if module != "nft_numgen"]
    (finding,) = static_findings(replace(facts, meta={"modules": some}))
    assert (finding.k, finding.subject) == ("K44", "nft_numgen")


def test_expressions_that_the_kernel_refuses(facts: Facts) -> None:
    every = [need.module for need in kube_proxy_needs([facts.family])]
    tried = {"accepted": ["nft_nat"], "refused": {"nft_numgen": "No such file or directory"}}
    for meta in ({"expressions": tried}, {"expressions": tried, "modules": every}):
        (finding,) = static_findings(replace(facts, meta=meta))
        assert (finding.k, finding.subject) == ("K44", "nft_numgen")


def test_rules_with_a_match_that_is_missing(made: Callable[..., Facts], node: Node) -> None:
    dropped = "-m conntrack --ctstate INVALID"
    text = cluster_text(80, node=node)
    assert dropped in text
    facts = made(text.replace(dropped, f"{dropped} -m nfacct --nfacct-name dropped"))
    every = [need.module for need in kube_proxy_needs([facts.family])]
    (finding,) = static_findings(replace(facts, meta={"modules": every}))
    assert finding.k == "K46"
    assert not list(static_findings(replace(facts, meta={"modules": [*every, "xt_nfacct"]})))


def test_a_table_of_the_other_mode(facts: Facts) -> None:
    assert not list(static_findings(replace(facts, native_tables=("ip6 kube-proxy", "ip calico"))))
    (finding,) = static_findings(replace(facts, native_tables=("ip calico", "ip kube-proxy")))
    assert (finding.k, finding.subject) == ("K45", "ip kube-proxy")


def test_every_difference_that_facts_decide_is_tested_here() -> None:
    tested = set(re.findall(r'"(K\d\d)"', Path(__file__).read_text()))
    assert tested == {one.id for one in catalogue() if one.decided is Decided.FACTS}


def test_one_address_at_two_ports_is_no_clash(made: Callable[..., Facts], node: Node) -> None:
    assert not list(static_findings(made(cluster_text(80, 81, node=node))))
