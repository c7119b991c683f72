"""Ways are told in the same words and the same order, whatever ports and endpoints chance has drawn."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

from backends.model.flow import Again, Flow, IcmpError, Pause, Reply, Send, Step
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, QuotedTuple, Verdict
from backends.model.packet import Packet, PortClass
from harness.diff.paths import PICKED, normal_paths
from translate.ir import Family

NODE, CLIENT, POD = 7, 1, 3
SEND = Send(packet=Packet(family=Family.IP, src=CLIENT, dst=2, proto=17, sport=40000, dport=53), entry="eth0")
MASQUERADED = Outcome(
    verdict=Verdict.FORWARD, out="pod", src=NODE, dst=POD, sport=0, dport=5353, snat=True, dnat=True
)
BACK = Outcome(verdict=Verdict.FORWARD, out="eth0", src=2, dst=CLIENT, sport=53, dport=40000)


def flow(*steps: Step) -> Flow:
    return Flow(id="f", steps=(SEND, *steps))


def branches(*ways: tuple[Outcome, ...]) -> list[OutcomeBranch]:
    return [OutcomeBranch(Fraction(1, len(ways)), outcomes) for outcomes in ways]


def drawn(seed: int, runs: int = 40) -> list[tuple[Outcome, ...]]:
    """So many runs through two endpoints, each from another port."""
    draw = random.Random(seed)
    return [
        (replace(MASQUERADED, sport=draw.randint(1024, 65535), dst=draw.choice((POD, POD + 1))),)
        for _ in range(runs)
    ]


def test_picked_ports_and_the_order_of_ways_do_not_show() -> None:
    told = {normal_paths(flow(), branches(*drawn(seed)), runs=40) for seed in range(5)}
    assert len({tuple(branch.outcomes for branch in ways) for ways in told}) == 1
    assert [branch.outcomes[0].dst for branch in next(iter(told))] == [POD, POD + 1]
    assert {branch.outcomes[0].sport for branch in next(iter(told))} == {PICKED}


def test_a_port_that_is_always_the_same_is_told() -> None:
    ways = branches(*[(replace(MASQUERADED, sport=6000),)] * 1)
    ways = [replace(ways[0], probability=Fraction(1))]
    (one,) = normal_paths(flow(), ways, runs=40)
    assert one.outcomes[0].sport == 6000


def test_of_a_single_run_a_changed_port_counts_as_picked() -> None:
    (one,) = normal_paths(flow(), branches((replace(MASQUERADED, sport=6000),)), runs=1)
    assert one.outcomes[0].sport == PICKED
    (other,) = normal_paths(flow(), branches((replace(MASQUERADED, sport=80),)), runs=1)
    assert other.outcomes[0].sport == 80, "from where the kernel does not pick one for 40000"


def test_a_port_that_was_kept_is_told() -> None:
    kept = replace(MASQUERADED, sport=40000)
    elsewhere = [(replace(one, out="eth0"),) for (one,) in drawn(1)]
    told = normal_paths(flow(), branches((kept,), *elsewhere), runs=41)
    assert {branch.outcomes[0].sport for branch in told} == {40000, PICKED}


def test_a_pick_may_be_the_port_that_was_sent() -> None:
    def run(port: int) -> tuple[Outcome, ...]:
        there = replace(MASQUERADED, sport=port)
        error = replace(BACK, sport=None, dport=None, quoted=QuotedTuple(NODE, POD, port, 5353))
        return there, BACK, error

    steps = flow(Reply(), IcmpError(type=3, code=3))
    picked = [run(port) for port in range(2000, 2040)]
    without = normal_paths(steps, branches(*picked), runs=40)
    with_one = normal_paths(steps, branches(*picked[1:], run(40000)), runs=40)
    assert [one.outcomes for one in with_one] == [one.outcomes for one in without]
    assert [one.sport for one in with_one[0].outcomes] == [PICKED, 53, None]
    assert [one.dport for one in with_one[0].outcomes] == [5353, 40000, None]
    error = with_one[0].outcomes[2]
    assert error.quoted == QuotedTuple(NODE, POD, PICKED, 5353)


def test_picks_of_two_connections_may_be_what_was_sent_in_turn() -> None:
    """From the node itself a pick that is the port that was sent changes nothing, not even the flags."""
    kept = replace(MASQUERADED, sport=40000, snat=False)

    def run(first: int, second: int) -> tuple[Outcome, ...]:
        there = [replace(MASQUERADED, sport=port) if port != 40000 else kept for port in (first, second)]
        return there[0], BACK, there[1]

    steps = flow(Reply(), Again())
    others = [run(2000 + n, 3000 + n) for n in range(40)]
    for drawn_ports in ((40000, 5000), (5000, 40000), (40000, 40000), (5000, 5000)):
        (one,) = normal_paths(steps, branches(*others, run(*drawn_ports)), runs=41)
        assert [outcome.sport for outcome in one.outcomes] == [PICKED, 53, PICKED]
        assert one.outcomes[0].snat


def test_a_pick_may_be_a_port_that_stays() -> None:
    """A node port: the pick is the port of the endpoint, and of a reply that NAT leaves as it is."""

    def run(port: int) -> tuple[Outcome, ...]:
        there = replace(MASQUERADED, sport=port)
        answer = replace(BACK, dport=port, snat=True)
        error = replace(BACK, sport=None, dport=None, quoted=QuotedTuple(NODE, POD, port, 5353))
        return there, answer, there, error

    steps = flow(Reply(), Again(), IcmpError(type=3, code=3))
    others = [run(port) for port in range(2000, 2040)]
    wanted = normal_paths(steps, branches(*others), runs=40)
    assert len(wanted) == 1
    for drawn_runs in ([*others, run(5353)], [run(5353), *others]):
        (one,) = normal_paths(steps, branches(*drawn_runs), runs=41)
        assert one.outcomes == wanted[0].outcomes


def test_of_a_single_run_the_pick_may_be_the_port_of_the_endpoint() -> None:
    (one,) = normal_paths(flow(), branches((replace(MASQUERADED, sport=5353),)), runs=1)
    assert (one.outcomes[0].sport, one.outcomes[0].dport) == (PICKED, 5353)


def test_a_reply_to_a_picked_port_shows_its_range() -> None:
    runs = [
        (replace(MASQUERADED, sport=port), replace(BACK, dport=port, snat=True)) for port in range(2000, 2040)
    ]
    (one,) = normal_paths(flow(Reply()), branches(*runs), runs=40)
    assert [outcome.dport for outcome in one.outcomes] == [5353, PICKED]


def test_a_range_that_a_rule_gives_is_told_where_it_fits() -> None:
    given = PortClass(5000, 5010)
    expected = FlowResult("f", tuple(branches((replace(MASQUERADED, sport=given),))))
    inside = branches(*[(replace(MASQUERADED, sport=5000 + n % 11, mark=1),) for n in range(40)])
    (one,) = normal_paths(flow(), inside, runs=40, expected=expected)
    assert one.outcomes[0].sport == given
    (other,) = normal_paths(flow(), branches(*drawn(1))[:1], runs=41, expected=expected)
    assert other.outcomes[0].sport == PICKED


def test_a_port_is_the_same_wherever_it_turns_up_again() -> None:
    steps = (Reply(), Pause(seconds=1), Again(), IcmpError(type=3, code=3))

    def run(port: int) -> tuple[Outcome, ...]:
        there = replace(MASQUERADED, sport=port)
        error = replace(BACK, sport=None, dport=None, quoted=QuotedTuple(NODE, POD, port, 5353))
        return there, BACK, there, error

    (one,) = normal_paths(flow(*steps), branches(*[run(port) for port in range(2000, 2040)]), runs=40)
    assert [outcome.sport for outcome in one.outcomes] == [PICKED, 53, PICKED, None]
    assert one.outcomes[3].quoted == QuotedTuple(NODE, POD, PICKED, 5353)


def test_the_port_of_an_answer_is_picked_by_where_the_answer_comes_from() -> None:
    def run(port: int) -> tuple[Outcome, ...]:
        there = replace(MASQUERADED, src=CLIENT, sport=40000, snat=False, dport=443)
        return there, replace(BACK, src=NODE, sport=port, snat=True)

    (one,) = normal_paths(flow(Reply()), branches(*[run(port) for port in range(100, 140)]), runs=40)
    assert one.outcomes[1].sport == PortClass(1, 511)
