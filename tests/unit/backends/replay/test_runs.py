"""Runs that repeat an earlier one send the same packets and have the same results as runs by themselves."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from backends.model.flow import Again, Flow, IcmpError, Pause, Repeated, Reply, Send, Step
from backends.model.outcome import FlowResult, Outcome, Verdict
from backends.model.packet import Packet
from backends.replay import runs
from backends.replay.observed import Observed
from backends.testbed.tapnode import Sighting
from backends.wire.frames import build
from tests.unit.backends.replay.helpers.fakenode import TCP, UDP, Forgetful, Node, icmp, out, replay_all
from translate.ir import TcpFlag

REFUSED = (3, 3)


def to_an_endpoint(drawn: random.Random) -> Callable[[Packet], list[Sighting]]:
    """Each packet leaves for one of two endpoints, is delivered, changed, refused at once, or dropped."""
    ways: tuple[Callable[[Packet], list[Sighting]], ...] = (
        lambda p: [out(replace(p, dst=8), "a")],
        lambda p: [out(replace(p, dst=9), "a")],
        lambda p: [out(p, None)],
        lambda p: [out(replace(p, src=7, sport=drawn.choice((11, 12))), "a", mark=4)],
        lambda p: [out(icmp(p, *REFUSED), "a")],
        lambda p: [Sighting(b"noise", "a", 0)],
        lambda p: [],
    )
    return lambda packet: drawn.choice(ways)(packet) if packet.quoted is None else [out(packet, "a")]


def refused_late(drawn: random.Random) -> Callable[[Packet], list[Sighting]]:
    """Some packets are refused or delivered only after a while, also after something else came out."""
    ways: tuple[Callable[[Packet], list[Sighting]], ...] = (
        lambda p: [out(icmp(p, *REFUSED), None)],
        lambda p: [out(p, None)],
        lambda p: [],
    )
    return lambda packet: drawn.choice(ways)(packet)


def results(flow: Flow, times: int, seed: int, *, together: bool) -> tuple[object, ...]:
    drawn = random.Random(seed)
    node = Node(to_an_endpoint(drawn), refused_late(drawn))
    loader = Forgetful(single=True)
    if together:
        (joined,) = replay_all(node, [Repeated(flow, times)], loader)
    else:
        alone = [replay_all(node, [flow], loader)[0] for _ in range(times)]
        joined = alone[0]
        for result in alone[1:]:
            joined = joined.joined(result)
    return counts(joined), frozenset(joined.notes), node.sent


def counts(result: FlowResult) -> Counter[tuple[Outcome, ...]]:
    return Counter({branch.outcomes: int(branch.probability * result.runs) for branch in result.branches})


STEPS: tuple[Step, ...] = (
    Reply(),
    Again(),
    Again(flags=TcpFlag.FIN | TcpFlag.ACK),
    IcmpError(type=3, code=1),
    Pause(seconds=0.0),
    Send(packet=UDP, entry="a"),
    Send(packet=replace(TCP, flags=TcpFlag.SYN), entry=None),
)


@given(
    st.sampled_from([UDP, replace(TCP, flags=TcpFlag.SYN)]),
    st.lists(st.sampled_from(STEPS), max_size=5),
    st.integers(1, 40),
    st.integers(0, 2**32),
)
def test_runs_have_the_results_that_they_have_alone(
    first: Packet, steps: list[Step], times: int, seed: int
) -> None:
    flow = Flow(id="f", steps=(Send(packet=first, entry="a"), *steps))
    assert results(flow, times, seed, together=True) == results(flow, times, seed, together=False)


def test_a_packet_is_built_once_at_each_place() -> None:
    flow = Flow(id="f", steps=(Send(packet=UDP, entry="a"), Reply(), Again()))
    with patch("backends.replay.runs.build", wraps=build) as built:
        node = Node(lambda p: [out(p, "a")])
        replay_all(node, [Repeated(flow, 50)])
    assert (built.call_count, len(node.sent)) == (3, 150)


def test_of_many_reactions_some_are_kept() -> None:
    step = Send(packet=UDP, entry="a")
    known = runs.FlowRuns(Flow(id="f", steps=(step,)))
    for port in range(1000, 2000):
        running = known.begin()
        turn = running.turn(step, 1)
        observed = Observed(Outcome(verdict=Verdict.FORWARD, sport=port), None, ())
        running.react(turn, (Sighting(bytes(port), "a", 0),), observed)
        run, new = running.ended()
        assert (run.outcomes, new) == ((observed.outcome,), True)
    assert 100 < len(turn.reactions) < 1000
