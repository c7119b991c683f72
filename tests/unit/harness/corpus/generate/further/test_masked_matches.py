"""Packets that fit a rule behind a jump, and fail what the jump asks."""

from __future__ import annotations

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow, Reply
from backends.model.node import node_from_json
from backends.simulator import RuleVisited, trace
from harness.corpus.generate import generate_corpus
from translate.ir import Protocol
from translate.read import read_ipsets, read_ruleset, with_sets

NODE = node_from_json(
    """{"interfaces": {"eth0": ["192.0.2.2/24"], "pod0": ["10.1.0.1/24"]},
        "routes": [{"dst": "default", "via": "192.0.2.1", "dev": "eth0"}]}""",
    name="node",
)
FILTER = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:X - [0:0]\n"


def strays(rules: str) -> dict[str, tuple[Flow, set[int]]]:
    """The flows, each with the lines of the rules that it matches."""
    job = Job(rules=read_ruleset(rules.encode(), name="rules"), node=NODE)
    found = {}
    for flow in generate_corpus(job, seed=0).flows:
        if "-stray-" in flow.id:
            events = [e for b in trace(job, flow) for step in b.steps for e in step.events]
            lines = {e.rule.origin.line for e in events if isinstance(e, RuleVisited) and e.matched}
            found[flow.id] = (flow, lines)
    return found


def test_an_answer_that_fits_a_rule_for_new_connections() -> None:
    found = strays(
        f"{FILTER}-A FORWARD -m conntrack --ctstate NEW -j X\n"
        "-A X -d 203.0.113.5/32 -p tcp -m tcp --dport 80 -j DROP\nCOMMIT\n"
    )
    ((name, (flow, lines)),) = found.items()
    assert name == "line7-forward-stray-ct.state"
    assert (flow.first.packet.src, flow.first.packet.sport) == (0xCB007105, 80)
    assert any(isinstance(step, Reply) for step in flow.steps)
    assert 7 not in lines


@pytest.mark.parametrize(("kind", "side"), [("dst", "daddr"), ("src", "saddr")])
def test_an_address_of_another_kind(kind: str, side: str) -> None:
    found = strays(
        "*nat\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:X - [0:0]\n"
        f"-A PREROUTING -m addrtype --{kind}-type LOCAL -j X\n"
        f"-A OUTPUT -m addrtype --{kind}-type LOCAL -j X\n"
        "-A X -p udp -m udp --dport 5353 -j DNAT --to-destination 10.1.0.9:53\nCOMMIT\n"
    )
    assert f"line7-output-stray-fib.{side}.type" in found
    for flow, lines in found.values():
        assert flow.first.packet.dport == 5353
        assert not lines


def test_what_asks_nothing_or_leads_on_has_none() -> None:
    rules = f"{FILTER}-A FORWARD -m conntrack --ctstate NEW -j X\n-A X -j DROP\nCOMMIT\n"
    assert strays(rules) == {}


SETS = """\
create OPEN bitmap:port range 0-65535
add OPEN 8080
create OURS hash:ip family inet
add OURS 10.1.0.9
"""


def test_a_member_of_a_set_that_lets_go_what_the_next_rule_takes() -> None:
    """And the same with the other protocol whose ports a ``bitmap:port`` holds."""
    rules = with_sets(
        read_ruleset(
            f"{FILTER}-A FORWARD -j X\n-A X -m set --match-set OPEN dst -j RETURN\n"
            "-A X -m set --match-set OURS dst -j DROP\nCOMMIT\n".encode(),
            name="rules",
        ),
        read_ipsets(SETS.encode(), name="sets"),
    )
    flows = generate_corpus(Job(rules=rules, node=NODE), seed=0).flows
    made = {flow.id: flow.first.packet for flow in flows}
    stray = made["line8-forward-stray-OPEN"]
    other = made["line7-forward-element-1-other-protocol-stray"]
    assert (stray.dst, stray.dport) == (other.dst, other.dport) == (0x0A010009, 8080)
    assert {stray.proto, other.proto} == {Protocol.TCP, Protocol.UDP}
