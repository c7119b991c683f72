"""Rules that tell connections apart by their source port."""

from __future__ import annotations

import pytest

from backends.model.sourceports import reads_source_ports
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
    "PREROUTING -p tcp -j DNAT --to-destination 10.0.0.9:80": False,
    "PREROUTING -p tcp -j DNAT --to-destination 10.0.0.9-10.0.0.12": True,
    "PREROUTING -p tcp -j NETMAP --to 10.0.0.0/24": True,
    "POSTROUTING -p tcp -j SNAT --to-source 10.0.0.9": False,
    "POSTROUTING -p tcp -j SNAT --to-source 10.0.0.9-10.0.0.12": True,
    "POSTROUTING -p tcp -j MASQUERADE --random-fully": False,
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_depends_on_source_ports_is_seen(rule: str) -> None:
    chain = rule.split()[0]
    table = "filter" if chain == "FORWARD" else "nat"
    text = f"*{table}\n:{chain} ACCEPT [0:0]\n-A {rule}\nCOMMIT\n"
    assert reads_source_ports(read_ruleset(text.encode(), name="rules")) is RULES[rule]
