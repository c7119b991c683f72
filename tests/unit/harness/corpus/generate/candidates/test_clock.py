"""Generated flows hit and narrowly miss tests of the clock, whatever the time is."""

from __future__ import annotations

import pytest

from backends.model.clock import at_present, has_time
from backends.model.contract import Job
from backends.model.node import Address, Interface, Node
from harness.corpus.formats.jsonlines import read_flows, write_flows
from harness.corpus.generate import generate_corpus
from translate.errors import ParseError
from translate.ir import Family, parse_address
from translate.read import read_ruleset

NODE = Node(
    tuple(
        Interface(name, (Address(Family.IP, parse_address(Family.IP, address), 24),))
        for name, address in (("eth0", "192.168.0.2"), ("pod0", "10.244.0.1"))
    )
)
RULES = """\
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A FORWARD -p udp -m udp --dport 1 -m time --timestart 08:00 --timestop 17:00 --weekdays Sat -j DROP
-A FORWARD -p udp -m udp --dport 2 -m time --timestart 22:00 --timestop 6:00 --weekdays 5 --contiguous -j DROP
-A FORWARD -p udp -m udp --dport 3 -m time --datestart 2030-02-01 --datestop 2030-02-02T12:00 -j DROP
-A FORWARD -p udp -m udp --dport 4 -m time --monthdays 31 ! --weekdays Mon,Tue -j DROP
-A FORWARD -p udp -m udp --dport 5 -m time --datestop 2015 --timestart 23:00 -j REJECT
COMMIT
"""


def test_every_rule_is_hit_and_each_test_just_missed() -> None:
    made = generate_corpus(Job(rules=read_ruleset(RULES.encode(), name="rules"), node=NODE), seed=1)
    assert not made.coverage.missed
    assert not made.together
    assert all(map(has_time, made.flows))
    times = {str(flow.first.packet.time % 86400) for flow in made.flows if flow.first.packet.time is not None}
    assert {"28799", "28800", "61200", "61201"} <= times  # a second too early, and a second too late
    assert not any(has_time(at_present(flow)) for flow in made.flows)
    assert read_flows(write_flows(made.flows).encode(), name="flows") == made.flows


@pytest.mark.parametrize(
    "time", ["2026-01-05", "2026-01-05T12:00:00Z", "1969-12-31T23:59:59", "2107-01-01T00:00:00"]
)
def test_faults_of_a_time(time: str) -> None:
    line = (
        f'{{"id": "a", "in": "eth0", "src": "10.0.0.1", "dst": "10.0.0.2", "proto": "99", "time": "{time}"}}'
    )
    with pytest.raises(ParseError, match="is not a time"):
        read_flows(line.encode(), name="flows")
