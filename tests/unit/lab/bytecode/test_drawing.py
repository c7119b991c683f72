"""Packets drawn around a statement: some pass all its tests, and each test alone keeps one from passing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lab.bytecode.conditions import World
from tests.lab.bytecode.drawing import draw_samples
from tests.lab.bytecode.meaning import perform
from tests.lab.bytecode.samples import Sample, State
from tests.unit.translate.helpers.rules import program
from translate.ir import Apply, Family, Field, Statement
from translate.passes import lower
from translate.read import read_ruleset

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


def test_a_packet_passes_tests_that_depend_on_each_other() -> None:
    options = "-m srh --srh-hdr-len-lt 6 ! --srh-segs-left-lt 1 --srh-last-entry-lt 3 ! --srh-tag 0"
    world = replace(WORLD, family=Family.IP6)
    text = f"*filter\n-A FORWARD {options} -j DROP\nCOMMIT\n"
    made = lower(read_ruleset(text.encode(), name="rules", family=Family.IP6), level=0)
    (statement,) = (s for chain in made.chains for s in chain.statements)
    for seed in range(10):
        assert any(not perform(statement, State(s), world) for s in draw_samples(statement, world, seed))


def test_a_rule_of_the_clock_gets_each_hour_on_each_day() -> None:
    made = program("mangle", "-A INPUT -m time --timestart 22:00 --timestop 06:00 --weekdays Sat -j DROP")
    (statement,) = (s for chain in made.chains for s in chain.statements)
    times = {
        (sample.number(Field.CLOCK_DAYTIME), sample.number(Field.CLOCK_WEEKDAY))
        for sample in draw_samples(statement, WORLD, 1)
    }
    assert times >= {(hour, day) for hour in (21600, 79200) for day in range(7)}
