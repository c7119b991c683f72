"""Rules that tell connections apart by the client's port."""

from __future__ import annotations

import pytest

from backends.iptables.backend import loader_of
from backends.model.sourceports import (
    gives_source_ports,
    port_boundaries,
    ports_alike,
    reads_source_ports,
)
from backends.nftables.backend import NftablesLoader
from translate.condense import emit_nft, lower
from translate.ir import Ruleset
from translate.read import read_ruleset

RULES = {
    "FORWARD -d 10.0.0.1/32 -p tcp -m tcp --dport 80 -j ACCEPT": False,
    "FORWARD -m conntrack --ctstate NEW -j ACCEPT": False,
    "FORWARD -m statistic --mode random --probability 0.5 -j ACCEPT": False,
    "FORWARD -m recent --name a --rcheck --seconds 9 -j ACCEPT": False,
    "FORWARD -p tcp -m tcp --sport 80 -j ACCEPT": True,
    "FORWARD -p tcp -m multiport --ports 80,81 -j ACCEPT": True,
    "FORWARD -m conntrack --ctorigsrcport 80 -j ACCEPT": True,
    "FORWARD -m hashlimit --hashlimit-upto 9/sec --hashlimit-mode srcport --hashlimit-name a -j DROP": True,
    "FORWARD -m string --string a --algo bm -j ACCEPT": True,
    "FORWARD -m nfacct --nfacct-name a": False,
    "PREROUTING -p tcp -j DNAT --to-destination 10.0.0.9:80": False,
    "PREROUTING -p tcp -j DNAT --to-destination 10.0.0.9-10.0.0.12": True,
    "PREROUTING -p tcp -j NETMAP --to 10.0.0.0/24": True,
    "POSTROUTING -p tcp -j SNAT --to-source 10.0.0.9": False,
    "POSTROUTING -p tcp -j SNAT --to-source 10.0.0.9-10.0.0.12": True,
    "POSTROUTING -p tcp -j MASQUERADE --random-fully": False,
}


BOUNDARIES = {
    "FORWARD -d 10.0.0.1/32 -j ACCEPT": (),
    "FORWARD -p tcp -m tcp --dport 80 -j ACCEPT": (80, 81),
    "FORWARD -p tcp -m tcp ! --sport 1024:2048 -j ACCEPT": (1024, 2049),
    "FORWARD -p tcp -m multiport --ports 80,90:91 -j ACCEPT": (80, 81, 90, 92),
    "FORWARD -p tcp -m tcp --sport 1024:65535 -j ACCEPT": (1024, 65536),
    "FORWARD -m conntrack --ctorigsrcport 80 --ctrepldstport 90 -j ACCEPT": (80, 81, 90, 91),
    "FORWARD -m conntrack --ctreplsrcport 80 -j ACCEPT": None,
    "POSTROUTING -p tcp -j MASQUERADE --to-ports 2000-3000": (2000, 3001),
    "POSTROUTING -p tcp -j SNAT --to-source 10.0.0.9:7000-7001": (7000, 7002),
    "PREROUTING -p tcp -j DNAT --to-destination 10.0.0.9:7000-7001": (),
    "PREROUTING -p tcp -j DNAT --to-destination 10.0.0.9-10.0.0.12": None,
    "FORWARD -m string --string a --algo bm -j ACCEPT": None,
}


def rules_of(rule: str) -> Ruleset:
    chain = rule.split()[0]
    table = "filter" if chain == "FORWARD" else "nat"
    text = f"*{table}\n:{chain} ACCEPT [0:0]\n-A {rule}\nCOMMIT\n"
    return read_ruleset(text.encode(), name="rules")


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_depends_on_source_ports_is_seen(rule: str) -> None:
    assert reads_source_ports(rules_of(rule)) is RULES[rule]


@pytest.mark.parametrize("rule", BOUNDARIES)
def test_ports_that_a_rule_distinguishes(rule: str) -> None:
    assert port_boundaries(rules_of(rule)) == BOUNDARIES[rule]


def test_ports_between_boundaries_are_alike() -> None:
    assert ports_alike(5000, ()) == range(1 << 16)
    boundaries = (80, 81, 5000, 6000, 1 << 16)
    assert ports_alike(79, boundaries) == range(80)
    assert ports_alike(80, boundaries) == range(80, 81)
    assert ports_alike(81, boundaries) == ports_alike(4999, boundaries) == range(81, 5000)
    assert ports_alike(5000, boundaries) == range(5000, 6000)
    assert ports_alike(65535, boundaries) == range(6000, 1 << 16)


@pytest.mark.parametrize(
    ("target", "gives"),
    [
        ("MASQUERADE", False),
        ("MASQUERADE --random-fully", False),
        ("MASQUERADE --to-ports 80-81", True),
        ("SNAT --to-source 192.0.2.1-192.0.2.3", False),
        ("SNAT --to-source 192.0.2.1:80", True),
        ("SNAT --to-source :80", True),
    ],
)
def test_rules_that_give_source_ports(target: str, gives: bool) -> None:
    ruleset = rules_of(f"POSTROUTING -p tcp -j {target}")
    assert gives_source_ports(ruleset) is gives
    assert loader_of("iptables-legacy", ruleset).gives_ports is gives
    assert NftablesLoader(emit_nft(lower(ruleset, level=2)).text).gives_ports is gives
