"""Packets drawn around a statement: some pass all its tests, and each test alone keeps one from passing."""

from __future__ import annotations

import pytest

from tests.lab.bytecode.conditions import World
from tests.lab.bytecode.drawing import draw_samples
from tests.lab.bytecode.meaning import perform
from tests.lab.bytecode.samples import Sample, State
from tests.unit.translate.helpers.rules import program
from translate.ir import Apply, Family, Statement

WORLD = World(family=Family.IP, sets={}, lists={})


def passes(statement: Statement, sample: Sample) -> bool:
    return not perform(statement, State(sample), WORLD)


@pytest.mark.parametrize(
    "options",
    [
        "-s 10.0.0.0/8 -d 10.1.0.1 -p tcp -m tcp --sport 1024: --dport 80",
        "-p sctp -m sctp ! --sport 443 ! --dport 443",
        "-p icmp -m icmp --icmp-type 3/1 -i eth0",
        "-p tcp -m tcp --tcp-flags SYN,ACK SYN -m mark --mark 0x10/0x30",
        "-p udp -m conntrack --ctproto 17 --ctstate NEW --ctdir ORIGINAL --ctorigdst 10.96.0.10",
        "-m addrtype --dst-type LOCAL ! --src-type BROADCAST -m connmark ! --mark 7",
        "-m statistic --mode random --probability 0.25 -f",
    ],
)
def test_each_test_decides_about_a_packet(options: str) -> None:
    made = program("filter", f"-A FORWARD {options} -j DROP", level=1)
    (statement,) = (s for chain in made.chains for s in chain.statements)
    assert isinstance(statement, Apply)
    samples = list(draw_samples(statement, WORLD, 1))
    assert any(passes(statement, sample) for sample in samples)
    for index in range(len(statement.tests)):
        others = Apply(
            tests=statement.tests[:index] + statement.tests[index + 1 :], actions=statement.actions
        )
        assert any(passes(others, s) and not passes(statement, s) for s in samples), statement.tests[index]


def test_the_same_seed_draws_the_same() -> None:
    made = program("filter", "-A FORWARD -p tcp -m tcp --dport 80 -j DROP")
    (statement,) = (s for chain in made.chains for s in chain.statements)
    assert list(draw_samples(statement, WORLD, 1)) == list(draw_samples(statement, WORLD, 1))
    assert list(draw_samples(statement, WORLD, 1)) != list(draw_samples(statement, WORLD, 2))
