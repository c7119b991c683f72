"""Closed TCP connections: their ports, where source NAT has no others left, and rules that close them."""

from __future__ import annotations

import platform
from dataclasses import replace

import pytest

from backends.model.contract import Job
from backends.model.flow import Again, Flow, Pause, Reply, Send, Step
from backends.model.node import node_from_json
from backends.model.outcome import Verdict
from backends.model.packet import Packet
from backends.simulator import simulate
from harness.diff.backends import backend
from tests.kernel.helpers.availability import require
from translate.ir import Family, TcpFlag, parse_address
from translate.read import read_ruleset

NODE = """{
  "interfaces": {"out": ["192.0.2.1/24"], "pod": ["10.244.0.1/24"]},
  "routes": [{"dst": "default", "via": "192.0.2.9", "dev": "out"}]
}"""
RULES = """*nat
:POSTROUTING ACCEPT [0:0]
-A POSTROUTING -p tcp -j SNAT --to-source 192.0.2.1:4000{}
COMMIT
"""
RESETS = """*filter
:FORWARD ACCEPT [0:0]
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -p tcp -m tcp --tcp-flags PSH PSH -j REJECT --reject-with tcp-reset
COMMIT
"""
KERNEL = tuple(map(int, platform.release().split(".")[:2]))
BACKENDS = ("iptables-legacy", "iptables-nft", "nftables", "tc-ebpf")
CLOSED: tuple[Step, ...] = (Reply(flags=TcpFlag.SYN | TcpFlag.ACK), Again(flags=TcpFlag.RST))
OPEN: tuple[Step, ...] = (Reply(flags=TcpFlag.SYN | TcpFlag.ACK), Again(flags=TcpFlag.ACK))


def syn(client: int, seq: int) -> Send:
    src, dst = parse_address(Family.IP, f"10.244.0.{client}"), parse_address(Family.IP, "198.51.100.4")
    packet = Packet(family=Family.IP, src=src, dst=dst, proto=6, sport=40001, dport=80, seq=seq)
    return Send(packet=packet, entry="pod")


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize(
    ("ports", "steps", "last", "ended"),
    [
        ("", CLOSED, 1 << 30, True),
        ("", CLOSED, 5, False),  # the sequence number is before that of the closed connection
        ("", OPEN, 1 << 30, False),
        ("-4001", (*CLOSED, syn(6, 1 << 20), *CLOSED), 1 << 30, True),
    ],
    ids=["closed", "closed but later", "open", "two ports"],
)
def test_a_syn_ends_a_closed_connection_for_its_port(
    name: str, ports: str, steps: tuple[Step, ...], last: int, *, ended: bool
) -> None:
    subject = backend(name)
    require(subject)
    flow = Flow(id="last", steps=(syn(5, 1 << 20), *steps, syn(7, last), Reply()))
    ruleset = read_ruleset(RULES.format(ports).encode(), name="rules")
    job = Job(rules=ruleset, node=node_from_json(NODE, name="node"))
    with subject.open(job) as session:
        (result,) = session.replay([flow])
    (branch,) = result.branches
    passes = ended and (KERNEL >= (6, 5) or name == "tc-ebpf")
    expected = (Verdict.FORWARD, Verdict.FORWARD) if passes else (Verdict.DROP, Verdict.UNSENT)
    assert tuple(outcome.verdict for outcome in branch.outcomes[-2:]) == expected
    possible = simulate(job, flow)
    assert possible.guessed is ended
    verdicts = {tuple(outcome.verdict for outcome in b.outcomes[-2:]) for b in possible.branches}
    assert expected in verdicts
    assert len(verdicts) == 1 + ended


@pytest.mark.parametrize("name", BACKENDS)
def test_a_rule_that_resets_a_connection_closes_it(name: str) -> None:
    subject = backend(name)
    require(subject)
    node = node_from_json(NODE, name="node")
    settings = {"tcp_timeout_close": "1", "tcp_loose": "0"}
    node = replace(node, sysctls={f"net.netfilter.nf_conntrack_{k}": v for k, v in settings.items()})
    push = Again(flags=TcpFlag.PSH | TcpFlag.ACK)
    flow = Flow(id="reset", steps=(syn(5, 0), *OPEN, push, Pause(seconds=2), Again(flags=TcpFlag.ACK)))
    job = Job(rules=read_ruleset(RESETS.encode(), name="rules"), node=node)
    with subject.open(job) as session:
        (result,) = session.replay([flow])
    (branch,) = result.branches
    closes = KERNEL >= (6, 3) or name == "tc-ebpf"
    last = Verdict.DROP if closes else Verdict.FORWARD
    assert [o.verdict for o in branch.outcomes] == [*[Verdict.FORWARD] * 3, Verdict.REJECT, last]
    possible = simulate(job, flow)
    assert possible.guessed
    assert {b.outcomes[-1].verdict for b in possible.branches} == {Verdict.DROP, Verdict.FORWARD}
