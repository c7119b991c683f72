"""Packets at the ends of the ranges that rules ask for."""

from __future__ import annotations

from backends.model.contract import Job
from backends.model.node import node_from_json
from harness.corpus.generate import generate_corpus
from translate.ir import Family, parse_address
from translate.read import read_ruleset

NODE = """{"interfaces": {"eth0": ["198.18.0.2/24"], "pod0": ["10.1.0.1/24"]},
           "routes": [{"dst": "default", "via": "198.18.0.1", "dev": "eth0"}]}"""


def edges(rules: str) -> dict[str, dict[str, object]]:
    text = f"*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n{rules}\nCOMMIT\n"
    ruleset = read_ruleset(text.encode(), name="rules")
    made = generate_corpus(Job(rules=ruleset, node=node_from_json(NODE, name="node")), seed=0)
    found: dict[str, dict[str, object]] = {}
    for flow in made.flows:
        words = flow.id.split("-")
        if words[1] in ("first", "last", "before", "behind"):
            packet = flow.first.packet
            values = {"ip.saddr": packet.src, "ip.daddr": packet.dst, "l4.dport": packet.dport}
            found.setdefault(words[2], {})[words[1]] = values[words[2]]
    return found


def address(text: str) -> int:
    return parse_address(Family.IP, text)


def test_a_source_network_is_met_at_both_ends_and_missed_beside_them() -> None:
    assert edges("-A FORWARD -s 192.0.2.16/28 -j DROP")["ip.saddr"] == {
        "first": address("192.0.2.16"),
        "last": address("192.0.2.31"),
        "before": address("192.0.2.15"),
        "behind": address("192.0.2.32"),
    }


def test_a_rule_that_the_node_hits_first_is_met_from_outside_too() -> None:
    """A packet that the node makes cannot have the addresses at the ends."""
    service = "-d 203.0.113.5/32 -p tcp -m tcp --dport 80 -j FW\n"
    found = edges(
        ":OUTPUT ACCEPT [0:0]\nCOMMIT\n*nat\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:FW - [0:0]\n"
        f"-A PREROUTING {service}-A OUTPUT {service}"
        "-A FW -s 198.18.0.0/24 -p tcp -j DNAT --to-destination 10.1.0.9:80"
    )
    assert set(found["ip.saddr"]) == {"first", "last", "before", "behind"}


def test_addresses_that_no_host_can_have_give_way_to_the_next() -> None:
    found = edges("-A FORWARD -s 10.1.0.0/24 -j DROP")["ip.saddr"]
    assert found["last"] == address("10.1.0.254")
    assert found["behind"] == address("10.1.1.0")


def test_ports_are_ranges_too() -> None:
    found = edges("-A FORWARD -p udp -m udp --dport 5000:5005 -j DROP")["l4.dport"]
    assert found == {"first": 5000, "last": 5005, "before": 4999, "behind": 5006}


def test_single_values_have_no_ends() -> None:
    assert edges("-A FORWARD -s 192.0.2.16/32 -p udp -m udp --dport 5000 -j DROP") == {}


def test_the_node_is_asked_for_the_ends_of_its_loopback_network() -> None:
    """But not for its broadcast address, to which no ordinary program sends."""
    rules = ":OUTPUT ACCEPT [0:0]\n-A OUTPUT ! -s 127.0.0.0/8 -d 127.0.0.0/8 -j DROP"
    assert edges(rules)["ip.daddr"]["last"] == address("127.255.255.254")


def test_what_a_return_lets_go_is_at_the_ends_what_the_next_rule_takes() -> None:
    """Only the node sends from 127.0.0.0/8, and only to port 80 it is seen that it may."""
    ruleset = read_ruleset(
        b"*filter\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:X - [0:0]\n-A OUTPUT -j X\n"
        b"-A X -s 127.0.0.0/8 -j RETURN\n-A X -d 203.0.113.5/32 -p tcp -m tcp --dport 80 -j DROP\nCOMMIT\n",
        name="rules",
    )
    made = generate_corpus(Job(rules=ruleset, node=node_from_json(NODE, name="node")), seed=0)
    (last,) = (flow.first for flow in made.flows if flow.id == "line6-last-ip.saddr-stray")
    assert last.entry is None
    assert (last.packet.src, last.packet.dst) == (address("127.255.255.254"), address("203.0.113.5"))
    assert last.packet.dport == 80
