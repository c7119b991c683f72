"""Goals read from an indexed trace are those of the full trace, in which every rule is visited."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.model.contract import Job
from backends.simulator import Simulation
from harness.corpus.cases import read_case
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.goals import Wanted, observe

CASES = Path(__file__).parents[4] / "corpus"


@pytest.mark.parametrize("name", ["cases/external-ips", "cases/every-construct", "cases6/kube-proxy"])
def test_an_indexed_trace_shows_the_same_goals(name: str) -> None:
    case = read_case(CASES / name)
    simulation = Simulation(Job(rules=case.ruleset, node=case.node))
    places = Places.of(case.ruleset, case.node)
    wanted = Wanted()
    series = 0
    for flow in case.flows:
        full = observe(simulation.trace(flow), places, wanted)
        series += len(wanted._made)
        indexed = observe(simulation.trace(flow, every_rule=False), places, wanted)
        assert (indexed.near, indexed.far) == (full.near, full.far)
        assert (indexed.sightings, indexed.services) == (full.sightings, full.services)
    assert series
