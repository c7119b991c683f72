"""ipsets that rules change: which packets change them, for how long, and up to how many elements."""

from __future__ import annotations

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow, Pause, Send
from backends.model.node import node_from_json
from backends.model.outcome import Verdict
from backends.model.packet import Packet
from backends.simulator import simulate
from translate.ir import Family, Protocol, parse_address
from translate.read import read_ipsets, read_ruleset, with_sets

SETS = b"""create plain hash:ip
add plain 198.51.100.99
create short hash:ip timeout 5
create two hash:ip maxelem 2
create nets hash:net
add nets 198.51.100.0/28
add nets 203.0.113.0/24
create range bitmap:port range 1000-2000
"""
NODE = node_from_json('{"interfaces": {"eth0": ["192.0.2.9/24"]}}', name="node")


def packet(src: str, dport: int) -> Send:
    return Send(
        packet=Packet(
            family=Family.IP,
            src=parse_address(Family.IP, src),
            dst=parse_address(Family.IP, "192.0.2.9"),
            proto=Protocol.UDP,
            sport=5,
            dport=dport,
        ),
        entry="eth0",
    )


def dropped(update: str, asked: str, *steps: tuple[str, int] | float) -> list[bool]:
    """Return which packets are dropped: those to port 7 that ``asked`` finds. Those to port 1 update."""
    rules = (
        "*raw\n:PREROUTING ACCEPT [0:0]\n"
        f"-A PREROUTING -p udp -m udp --dport 7 -m set --match-set {asked} -j DROP\n"
        f"-A PREROUTING -p udp -m udp ! --dport 7 -j SET {update}\nCOMMIT\n"
    )
    ruleset = with_sets(read_ruleset(rules.encode(), name="rules"), read_ipsets(SETS, name="sets"))
    sent = tuple(packet(*step) if isinstance(step, tuple) else Pause(seconds=step) for step in steps)
    (branch,) = simulate(Job(rules=ruleset, node=NODE), Flow(id="x", steps=sent)).branches
    return [outcome.verdict is Verdict.DROP for outcome in branch.outcomes]


A, B, C = "198.51.100.1", "198.51.100.2", "198.51.100.3"


@pytest.mark.parametrize(
    ("update", "asked", "steps", "expected"),
    [
        ("--add-set plain src", "plain src", [(A, 7), (A, 1), (A, 7), (B, 7)], [False, False, True, False]),
        ("--del-set plain src", "plain src", [("198.51.100.99", 1), ("198.51.100.99", 7)], [False, False]),
        ("--add-set plain src --del-set plain src", "plain src", [(A, 1), (A, 7)], [False, False]),
        ("--add-set short src", "short src", [(A, 1), 4.9, (A, 7), 0.2, (A, 7)], [False, True, False]),
        ("--add-set short src", "short src", [(A, 1), 3, (A, 1), 3, (A, 7)], [False, False, False]),
        ("--add-set short src --exist", "short src", [(A, 1), 3, (A, 1), 3, (A, 7)], [False, False, True]),
        ("--add-set short src --timeout 0", "short src", [(A, 1), 9, (A, 7)], [False, True]),
        ("--add-set plain src --timeout 1", "plain src", [(A, 1), 9, (A, 7)], [False, True]),
        ("--add-set two src", "two src", [(A, 1), (B, 1), (C, 1), (C, 7), (B, 7)], [*[False] * 4, True]),
        ("--add-set nets src", "nets src", [("203.0.113.1", 1), ("203.0.113.1", 7)], [False, True]),
        ("--del-set nets src", "nets src", [("203.0.113.1", 1), ("203.0.113.1", 7)], [False, True]),
        ("--add-set nets src", "nets src", [("10.0.0.1", 1), ("10.0.0.15", 7), ("10.0.0.16", 7)], [0, 1, 0]),
        ("--add-set range dst", "range dst", [(A, 2001), (A, 7)], [False, False]),
        ("--add-set range src", "range dst", [(A, 1), (A, 7)], [False, False]),
    ],
)
def test_a_packet_changes_the_set_for_the_next(
    update: str, asked: str, steps: list[tuple[str, int] | float], expected: list[bool]
) -> None:
    assert dropped(update, asked, *steps) == expected


def test_each_flow_begins_with_the_saved_members() -> None:
    for _ in range(2):
        assert dropped("--add-set plain src", "plain src", (A, 7), (A, 1), (A, 7)) == [False, False, True]
