"""Rules that tell connections apart by their source port."""

from __future__ import annotations

import pytest

from backends.model.sourceports import reads_source_ports
from translate.read import read_ruleset

MATCHES = {
    "-d 10.0.0.1/32 -p tcp -m tcp --dport 80": False,
    "-m conntrack --ctstate NEW": False,
    "-m statistic --mode random --probability 0.5": False,
    "-m recent --name a --rcheck --seconds 9": False,
    "-p tcp -m tcp --sport 80": True,
    "-p tcp -m multiport --ports 80,81": True,
    "-m conntrack --ctorigsrcport 80": True,
    "-m hashlimit --hashlimit-upto 9/sec --hashlimit-mode srcport --hashlimit-name a": True,
    "-m string --string a --algo bm": True,
}


@pytest.mark.parametrize("match", MATCHES)
def test_a_test_of_source_ports_is_seen(match: str) -> None:
    text = f"*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD {match} -j ACCEPT\nCOMMIT\n"
    rules = read_ruleset(text.encode(), name="rules")
    assert reads_source_ports(rules) is MATCHES[match]


ACTIONS = {
    "DNAT --to-destination 10.0.0.9:80": False,
    "DNAT --to-destination 10.0.0.9-10.0.0.12": True,
    "SNAT --to-source 10.0.0.9": False,
    "SNAT --to-source 10.0.0.9-10.0.0.12": True,
    "MASQUERADE --random-fully": False,
    "NETMAP --to 10.0.0.0/24": True,
}


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_that_chooses_by_source_ports_is_seen(action: str) -> None:
    chain = "POSTROUTING" if action.startswith(("SNAT", "MASQ")) else "PREROUTING"
    text = f"*nat\n:{chain} ACCEPT [0:0]\n-A {chain} -p tcp -j {action}\nCOMMIT\n"
    assert reads_source_ports(read_ruleset(text.encode(), name="rules")) is ACTIONS[action]
