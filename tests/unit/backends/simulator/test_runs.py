"""Every run of a flow begins on a node that knows of no other, whatever ran on it before."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.model.contract import Job
from backends.model.flow import Again, Flow, Pause, Reply, Send, Step
from backends.model.node import node_from_json
from backends.model.outcome import FlowResult
from backends.model.packet import Packet
from backends.simulator import Simulation
from backends.simulator.conntrack.table import Conntrack
from backends.simulator.hooks.stack import Stack
from backends.simulator.matching.recent import RecentLists
from tests.lab.examples import examples
from translate.ir import Family, Protocol, parse_address
from translate.read import read_ruleset

NODE = node_from_json(
    '{"interfaces": {"west": ["10.1.0.1/24"], "east": ["10.2.0.1/24"]}}',
    name="node",
)
RULES = """*mangle
:PREROUTING ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
-A PREROUTING -m recent --name a --rcheck --seconds 5 --rsource -j MARK --set-xmark 0x1/0x1
-A PREROUTING -m recent --name a --set --rsource
-A FORWARD -m statistic --mode nth --every 2 --packet 0 -j MARK --set-xmark 0x2/0x2
-A FORWARD -p udp -m udp --sport 4000:4001 -j MARK --set-xmark 0x4/0x4
-A FORWARD -m conntrack --ctstate ESTABLISHED -j MARK --set-xmark 0x8/0x8
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -m statistic --mode random --probability 0.50000000000 -p udp -j DNAT --to-destination 10.2.0.6
-A POSTROUTING -s 10.1.0.5/32 -o east -j MASQUERADE --random-fully
COMMIT
*filter
:FORWARD ACCEPT [0:0]
-A FORWARD -d 10.2.0.6/32 -s 10.1.0.6/32 -j REJECT
COMMIT
"""


def flow(draw: random.Random) -> Flow:
    steps: list[Step] = []
    for _ in range(draw.randint(1, 2)):
        packet = Packet(
            family=Family.IP,
            src=parse_address(Family.IP, draw.choice(("10.1.0.5", "10.1.0.6"))),
            dst=parse_address(Family.IP, draw.choice(("10.2.0.5", "10.2.0.6"))),
            proto=draw.choice((Protocol.UDP, Protocol.TCP)),
            sport=4000,
            dport=53,
        )
        steps.append(Send(packet=packet, entry="west"))
        steps += draw.choice(((), (Reply(),), (Reply(), Again()), (Pause(seconds=6),)))
    return Flow(id="flow", steps=tuple(steps))


def shared_and_alone(seed: int) -> list[tuple[FlowResult, FlowResult]]:
    draw = random.Random(seed)
    job = Job(rules=read_ruleset(RULES.encode(), name="rules"), node=NODE)
    shared = Simulation(job)
    flows = [flow(draw) for _ in range(4)]
    return [(shared.simulate(one), Simulation(job).simulate(one)) for one in flows]


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 1 << 32))
def test_what_ran_before_changes_no_outcome(seed: int) -> None:
    for shared, alone in shared_and_alone(seed):
        assert shared == alone
        assert sum(way.probability for way in shared.branches) == 1


def _nothing(real: Callable) -> Callable:
    return lambda self: None


FAULTS: dict[str, tuple[type, str, Callable]] = {
    "connections are kept": (Conntrack, "begin", _nothing),
    "lists are kept": (RecentLists, "begin", _nothing),
    "the first packet is not the first": (Stack, "begin", _nothing),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, planted = FAULTS[fault]
    monkeypatch.setattr(owner, name, planted(getattr(owner, name)))

    assert any(shared != alone for seed in range(100) for shared, alone in shared_and_alone(seed))
