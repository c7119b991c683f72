"""The number of runs: it keeps the promised bound, and is not much larger."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.model.flow import Flow, Pause, Reply, Send
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, Verdict
from backends.model.packet import Packet
from harness.diff.sampling import (
    MISS,
    MOST_PACKETS,
    ONCE,
    RAREST,
    RESEMBLED_MISS,
    Sampling,
    Share,
    runs_needed,
)
from translate.ir import Family

SEND = Send(packet=Packet(family=Family.IP, src=1, dst=2, proto=17, sport=40000, dport=53), entry="eth0")
FLOW = Flow(id="f", steps=(SEND,))
SURE = Sampling()
TWO_TWICE, THREE_TWICE = 37, 63
"""Runs in which each of two, or of three, paths occurs twice."""


def ways(*odds: Fraction) -> FlowResult:
    outcomes = [Outcome(verdict=Verdict.FORWARD, out="a", src=1, dst=n) for n in range(len(odds))]
    branches = zip(odds, outcomes, strict=True)
    return FlowResult("f", tuple(OutcomeBranch(p, (outcome,)) for p, outcome in branches))


def alike(count: int) -> tuple[Fraction, ...]:
    return (Fraction(1, count),) * count


def missed(odds: tuple[Fraction, ...], runs: int, times: int) -> float:
    """Return the sum of the chances of paths to occur less often, from the binomial distribution."""
    return math.fsum(
        float(math.comb(runs, k) * one**k * (1 - one) ** (runs - k)) for one in odds for k in range(times)
    )


@given(
    st.lists(st.integers(1, 50), min_size=2, max_size=20),
    st.sampled_from([1e-3, 1e-6, 1e-9]),
    st.sampled_from([1, 2]),
)
def test_the_bound_holds_and_one_run_less_would_not_do(weights: list[int], miss: float, times: int) -> None:
    odds = tuple(Fraction(weight, sum(weights)) for weight in weights)
    runs = runs_needed(odds, miss, times)
    assert missed(odds, runs, times) <= miss < missed(odds, runs - 1, times)


@pytest.mark.parametrize(("count", "runs"), [(1, 1), (2, 31), (3, 54), (9, 195), (1000, 27618)])
def test_services_of_so_many_endpoints_need_so_many_runs(count: int, runs: int) -> None:
    assert runs_needed(alike(count), 1e-9) == runs


def test_ways_that_are_hardly_ever_taken_are_not_waited_for() -> None:
    rare = Fraction(1, 64512)
    assert runs_needed((1 - rare, rare), 1e-9) < 5
    assert runs_needed((Fraction(1, 2), Fraction(1, 2) - rare, rare), 1e-9) == 31


def test_many_rare_ways_are_waited_for_as_if_they_were_not_so_rare() -> None:
    assert runs_needed(alike(5000), 1e-9) == runs_needed((RAREST,) * 5000, 1e-9)


def test_a_flow_that_chance_does_not_decide_is_run_once() -> None:
    assert SURE.first_runs(FLOW, ways(Fraction(1))) == 1
    assert SURE.first_runs(FLOW, ways(*alike(3))) == 54
    assert Sampling(least=500).first_runs(FLOW, ways(*alike(3))) == 500
    assert Sampling(least=500).first_runs(FLOW, ways(Fraction(1))) == 1
    assert ONCE.first_runs(FLOW, ways(*alike(3))) == 1


@pytest.mark.parametrize(("among", "runs"), [(1, 54), (2, 27), (5, 11), (9, 7), (100, 7)])
def test_flows_that_share_runs_have_those_of_one_and_enough_to_show_most_outcomes(
    among: int, runs: int
) -> None:
    assert SURE.shared_runs(FLOW, ways(*alike(3)), Share(among)) == runs


def test_flows_that_others_resemble_have_fewer_first_runs() -> None:
    assert SURE.shared_runs(FLOW, ways(*alike(3)), Share(1, RESEMBLED_MISS)) == 20
    assert Sampling(miss=0.01).shared_runs(FLOW, ways(*alike(3)), Share(1, RESEMBLED_MISS)) == 15
    assert Sampling(least=500).shared_runs(FLOW, ways(*alike(3)), Share(1)) == 54


@pytest.mark.parametrize(("needed", "runs"), [({0, 1, 2}, 7), ({1}, 4), (set(), 2)])
def test_a_flow_that_needs_to_show_few_paths_has_fewer_first_runs(needed: set[int], runs: int) -> None:
    assert SURE.shared_runs(FLOW, ways(*alike(3)), Share(27, needed=frozenset(needed))) == runs


def test_flows_that_share_runs_never_need_more_than_one_flow() -> None:
    assert SURE.shared_runs(FLOW, ways(Fraction(1)), Share(3)) == 1
    assert ONCE.shared_runs(FLOW, ways(*alike(3)), Share(3)) == 1


def test_a_flow_that_waits_is_run_once() -> None:
    waiting = Flow(id="f", steps=(SEND, Pause(seconds=1), SEND))
    assert SURE.first_runs(waiting, ways(*alike(3))) == 1
    assert SURE.further_runs(waiting, ways(*alike(3)), ways(Fraction(1)), differs=True) == 0


def test_no_flow_sends_more_than_a_limit() -> None:
    long = Flow(id="f", steps=(SEND, *[Reply()] * 63))
    assert SURE.first_runs(long, ways(*alike(5000))) == MOST_PACKETS // 64


def test_what_only_the_backend_knows_of_chance_is_waited_for() -> None:
    once = FlowResult("f", ways(Fraction(1)).branches, rarest=Fraction(1, 3))
    assert SURE.further_runs(FLOW, ways(Fraction(1)), once, differs=False) == 54 - 1
    enough = FlowResult("f", ways(Fraction(1)).branches, runs=54, rarest=Fraction(1, 3))
    assert SURE.further_runs(FLOW, ways(Fraction(1)), enough, differs=False) == 0


def test_where_something_differs_all_ways_are_seen_twice() -> None:
    seen = FlowResult("f", ways(*alike(4)).branches, runs=54)
    twice = runs_needed(alike(4), MISS, times=2)
    assert twice == 89
    assert SURE.further_runs(FLOW, ways(*alike(3)), seen, differs=True) == twice - 54
    assert SURE.further_runs(FLOW, ways(*alike(3)), seen, differs=False) == 0
    once = FlowResult("f", ways(Fraction(1)).branches)
    assert SURE.further_runs(FLOW, ways(Fraction(1)), once, differs=True) == TWO_TWICE - 1
    assert ONCE.further_runs(FLOW, ways(Fraction(1)), once, differs=True) == 0


def test_what_no_rule_chooses_at_random_is_not_run_again_where_it_differs() -> None:
    once = FlowResult("f", ways(Fraction(1)).branches, settled=True)
    assert SURE.further_runs(FLOW, ways(*alike(3)), once, differs=True) == 0
    random = replace(once, settled=False)
    assert SURE.further_runs(FLOW, ways(*alike(3)), random, differs=True) == THREE_TWICE - 1
    branch = once.branches[0]
    picked = replace(branch.outcomes[0], snat=True, sport=50000)
    port = replace(once, branches=(replace(branch, outcomes=(picked,)),))
    assert SURE.further_runs(FLOW, ways(Fraction(1)), port, differs=True) == TWO_TWICE - 1
    noted = replace(once, notes=("a stray frame",))
    assert SURE.further_runs(FLOW, ways(Fraction(1)), noted, differs=True) == TWO_TWICE - 1
    unlike = replace(once, branches=ways(*alike(2)).branches)
    assert SURE.further_runs(FLOW, ways(Fraction(1)), unlike, differs=True) == TWO_TWICE - 1
