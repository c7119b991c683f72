"""Findings about lists that are too short for their clients do not depend on random choices."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from backends.model.flow import Flow, Send
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, Verdict
from harness.diff.paths import PICKED
from nfparity.assess.detectors.affinity import AFFINITY
from nfparity.assess.difference import Measured
from nfparity.assess.node.facts import Facts


@pytest.fixture(scope="module")
def flow(facts: Facts) -> Flow:
    (detector,) = (one for one in AFFINITY if one.k == "K25")
    return next(iter(detector.flows(facts)))


def went(flow: Flow, seed: int, *, keeps: bool, masqueraded: bool, falls_on: int | None) -> FlowResult:
    """Every client goes to one of two endpoints; then again, to the same one if it ``keeps`` to that."""
    draw = random.Random(seed)
    clients = len(flow.steps) // 2
    first = [draw.randrange(2) for _ in range(clients)]
    second = first if keeps else [draw.randrange(2) for _ in range(clients)]
    outcomes = []
    for step, endpoint in zip(flow.steps, (*first, *second), strict=True):
        assert isinstance(step, Send)
        outcome = Outcome(
            verdict=Verdict.FORWARD,
            out="cni0",
            src=step.packet.src,
            dst=endpoint,
            sport=step.packet.sport,
            dport=80,
            dnat=True,
        )
        if masqueraded:
            outcome = replace(outcome, src=7, sport=draw.randint(50_000, 65_535), snat=True)
        outcomes.append(outcome)
    if falls_on is not None:
        outcomes = [one if one.dst else replace(one, sport=falls_on) for one in outcomes[:3]] + outcomes[3:]
    return FlowResult(flow.id, (OutcomeBranch(Fraction(1), tuple(outcomes)),))


def measured(
    facts: Facts, flow: Flow, seed: int, falls_on: int | None, *, masqueraded: bool
) -> Measured | None:
    (detector,) = (one for one in AFFINITY if one.k == "K25")
    assert detector.measure is not None
    now, later = (
        went(flow, seed + keeps, keeps=keeps, masqueraded=masqueraded, falls_on=falls_on)
        for keeps in (False, True)
    )
    return detector.measure(facts, flow, now, later)


def test_a_port_that_is_picked_may_be_one_that_was_sent(facts: Facts, flow: Flow) -> None:
    found = {
        measured(facts, flow, seed, falls_on, masqueraded=True)
        for seed in range(6)
        for falls_on in (None, 42000, 43000)
    }
    (one,) = found
    assert one is not None
    assert (one.before.sport, one.after.sport) == (PICKED, PICKED)


def test_what_is_not_masqueraded_is_told_of_the_last_client(facts: Facts, flow: Flow) -> None:
    found = {measured(facts, flow, seed, None, masqueraded=False) for seed in range(6)}
    (one,) = found
    assert one is not None
    last = flow.steps[-1]
    assert isinstance(last, Send)
    assert (one.before.src, one.before.sport) == (last.packet.src, last.packet.sport)
