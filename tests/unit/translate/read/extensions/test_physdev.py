"""``-m physdev`` in the reader, the simulator and both translations; with bridges in tests/kernel."""

from __future__ import annotations

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow, Send
from backends.model.node import node_from_json
from backends.model.outcome import Verdict
from backends.model.packet import Packet
from backends.simulator import Simulation
from tests.unit.translate.helpers.rules import nft, program
from translate.bpf import emit
from translate.errors import ParseError, UnsupportedError
from translate.ir import Family, Field, FieldTest
from translate.passes import LEVELS
from translate.read import read_ruleset

ASKS = "-m physdev --physdev-is-in"
ASKS_NOT = "-m physdev ! --physdev-is-in"


@pytest.mark.parametrize("level", LEVELS)
def test_from_a_bridge_is_one_match(level: int) -> None:
    chains = nft("filter", f"-A INPUT -p tcp {ASKS} -j DROP", level=level)
    assert chains["filter_INPUT"] == ['meta l4proto tcp meta iifkind "bridge" drop']


@pytest.mark.parametrize("level", LEVELS)
def test_from_no_bridge_is_what_does_not_return(level: int) -> None:
    # "meta iifkind != bridge" would not match a packet from a device of no kind.
    chains = nft("filter", f"-A INPUT -p tcp {ASKS_NOT} -j DROP", level=level)
    assert chains["filter_INPUT"] == ["meta l4proto tcp jump filter_INPUT_2"]
    assert chains["filter_INPUT_2"] == ['meta iifkind "bridge" return', "drop"]


def test_what_leaves_the_chain_takes_the_rest_of_it_along() -> None:
    chains = nft("filter", f"-A INPUT {ASKS_NOT} -j RETURN", "-A INPUT -p tcp -j DROP", level=0)
    assert chains["filter_INPUT"] == ["goto filter_INPUT_3", "goto filter_INPUT_2"]
    assert chains["filter_INPUT_3"] == ['meta iifkind "bridge" goto filter_INPUT_2', "return"]
    assert chains["filter_INPUT_2"] == ["meta l4proto tcp drop"]


@pytest.mark.parametrize(
    "endpoint", ["-m statistic --mode random --probability 0.5 ", "-d 10.96.0.1/32 -p tcp -m tcp --dport 80 "]
)
def test_no_map_stands_behind_it(endpoint: str) -> None:
    rules = [f"-A FORWARD {endpoint}{ASKS_NOT} -j A", f"-A FORWARD {ASKS_NOT} -j B"]
    rules += ["-A A -p tcp -j DROP", "-A B -p udp -j DROP"]
    chains = nft("filter", *rules, level=2)
    assert sum('meta iifkind "bridge" return' in chain for chain in chains.values()) == 2
    assert not any("vmap" in rule for chain in chains.values() for rule in chain)


def test_tc_ebpf() -> None:
    text = emit(program("filter", f"-A FORWARD {ASKS_NOT} -j DROP")).chains
    assert "!(from_bridge(p) == 0x1)" in text


def test_a_listing_says_it_as_well() -> None:
    listing = (
        "Chain FORWARD (policy ACCEPT)\n"
        "target     prot opt source               destination         \n"
        "ACCEPT     all  --  anywhere             anywhere             PHYSDEV match ! --physdev-is-in\n"
    )
    (test,) = (
        test
        for table in read_ruleset(listing.encode(), name="listing", family=Family.IP).tables
        for chain in table.chains
        for rule in chain.rules
        for test in rule.tests
        if isinstance(test, FieldTest)
    )
    assert (test.field, test.negated) == (Field.BRIDGED, True)


def test_no_device_of_a_simulated_node_is_a_bridge() -> None:
    text = f"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT {ASKS_NOT} -j DROP\nCOMMIT\n"
    node = node_from_json('{"interfaces": {"eth0": ["192.0.2.2/24"]}}', name="node")
    simulation = Simulation(Job(rules=read_ruleset(text.encode(), name="rules"), node=node))
    packet = Packet(family=Family.IP, src=0xC0000207, dst=0xC0000202, proto=17, sport=1, dport=2)
    (branch,) = simulation.simulate(Flow(id="one", steps=(Send(packet=packet, entry="eth0"),))).branches
    assert [outcome.verdict for outcome in branch.outcomes] == [Verdict.DROP]


@pytest.mark.parametrize(
    ("options", "holds"),
    [
        ("--physdev-in eth0", False),
        ("! --physdev-in eth0", True),
        ("--physdev-in +", False),
        ("! --physdev-in +", True),
        ("--physdev-out eth+", False),
        ("! --physdev-out eth+ ! --physdev-is-out", True),
        ("--physdev-is-bridged", False),
        ("! --physdev-is-bridged", True),
        ("! --physdev-is-in --physdev-is-out", False),
    ],
)
def test_a_packet_of_no_bridge_has_no_ports(options: str, *, holds: bool) -> None:
    text = f"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m physdev {options} -j DROP\nCOMMIT\n"
    node = node_from_json('{"interfaces": {"eth0": ["192.0.2.2/24"]}}', name="node")
    simulation = Simulation(Job(rules=read_ruleset(text.encode(), name="rules"), node=node))
    packet = Packet(family=Family.IP, src=0xC0000207, dst=0xC0000202, proto=17, sport=1, dport=2)
    (branch,) = simulation.simulate(Flow(id="one", steps=(Send(packet=packet, entry="eth0"),))).branches
    assert [outcome.verdict for outcome in branch.outcomes] == [Verdict.DROP if holds else Verdict.LOCAL]


def test_ports_are_refused() -> None:
    for option in ("--physdev-in eth0", "--physdev-is-out", "! --physdev-is-bridged"):
        with pytest.raises(UnsupportedError, match="ports"):
            nft("filter", f"-A FORWARD -m physdev {option} -j DROP")


def test_bridged_packets_may_be_tested_in_output() -> None:
    program("filter", "-A OUTPUT -m physdev --physdev-is-bridged --physdev-out eth0 -j DROP")


@pytest.mark.parametrize(
    ("table", "rule", "message"),
    [
        ("nat", f"-A POSTROUTING {ASKS} -j ACCEPT", "--physdev-is-in is not modelled in POSTROUTING"),
        ("filter", "-A FORWARD -m physdev", "physdev needs one of its options"),
        ("filter", "-A FORWARD -m physdev --physdev-in abcdefghijklmnop", "has more than 15 bytes"),
        ("filter", "-A OUTPUT -m physdev --physdev-out eth0", "--physdev-out is not valid in OUTPUT"),
        ("filter", "-A OUTPUT -m physdev ! --physdev-is-out", "--physdev-is-out is not valid in OUTPUT"),
        (
            "filter",
            "-A OUTPUT -m physdev ! --physdev-is-bridged --physdev-out eth0",
            "--physdev-out is not valid in OUTPUT",
        ),
    ],
)
def test_wrong(table: str, rule: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        program(table, rule)
