"""The simulator against iptables-legacy on this kernel: random flows around a ruleset's constants.

The kernel is right. Every flow must show one of the outcomes that the simulator allows, and the
shares of the outcomes must be those that it states.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from math import sqrt
from pathlib import Path

import pytest

from backends.iptables.backend import IptablesBackend
from backends.model.contract import Job
from backends.model.flow import Flow
from backends.model.node import node_from_json
from backends.model.outcome import FlowResult, Verdict
from backends.simulator import Simulation
from harness.corpus.random.flows import random_flows
from harness.diff.compare import compare, matching_branches
from tests.kernel.helpers.availability import require
from translate.read import read_ruleset

RULESETS = Path(__file__).parent.parent / "corpus" / "rulesets"
NODES = (
    "kind-node/worker.json",
    "kind-node/control-plane.json",
    "every-target/node.json",
    "every-target/strict.json",
    "every-target/odd.json",
)
FALSE_ALARM_SIGMAS = 5  # one in 1.7 million runs


@pytest.fixture(
    scope="module",
    params=[
        *((node, 2_000) for node in NODES),
        *(pytest.param((node, 10_000), marks=pytest.mark.slow) for node in NODES),
    ],
    ids=lambda param: "{}-{}".format(*param),
)
def played(request: pytest.FixtureRequest) -> list[tuple[Flow, FlowResult, FlowResult]]:
    backend = IptablesBackend("iptables-legacy")
    require(backend)
    name, count = request.param
    path = RULESETS / name
    rules = path.parent / "rules.iptables-save"
    ruleset = read_ruleset(rules.read_bytes(), name=str(rules))
    job = Job(rules=ruleset, node=node_from_json(path.read_text(), name=str(path)))
    flows = list(random_flows(ruleset, job.node, seed=20_261_121, count=count))
    simulation = Simulation(job)
    with backend.open(job) as session:
        return [
            (f, simulation.simulate(f), seen) for f, seen in zip(flows, session.replay(flows), strict=True)
        ]


def test_every_outcome_is_one_that_the_simulator_allows(
    played: list[tuple[Flow, FlowResult, FlowResult]],
) -> None:
    assert played
    different = [f"{f.id}: {d[0]}" for f, wanted, seen in played if (d := compare(f, wanted, seen))]
    assert different == []


def test_branches_come_as_often_as_the_simulator_says(
    played: list[tuple[Flow, FlowResult, FlowResult]],
) -> None:
    deviation, variance, draws = Fraction(0), Fraction(0), 0
    for flow, wanted, seen in played:
        if len(wanted.branches) < 2:
            continue
        (shown,) = seen.branches
        hits = matching_branches(flow, wanted, shown)
        first = wanted.branches[0].probability
        deviation += (0 in hits) - first
        variance += first * (1 - first)
        draws += 1
    assert draws > len(played) / 200
    assert abs(float(deviation)) < FALSE_ALARM_SIGMAS * sqrt(float(variance))


def test_the_flows_meet_every_kind_of_end(played: list[tuple[Flow, FlowResult, FlowResult]]) -> None:
    seen = Counter(_verdicts(r for _, _, r in played))
    assert all(seen[v] > len(played) / 50 for v in Verdict if v is not Verdict.UNKNOWN), seen


def _verdicts(results: Iterator[FlowResult]) -> Iterator[Verdict]:
    for result in results:
        for branch in result.branches:
            yield from (o.verdict for o in branch.outcomes)
