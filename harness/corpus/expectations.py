"""Comparison of the expected outcomes of cases with the simulator's."""

from __future__ import annotations

import json

from backends.model.contract import Job
from backends.model.outcome import FlowResult, OutcomeBranch
from backends.simulator import Simulation
from harness.corpus.cases import Case
from harness.corpus.formats.outcomes import outcome_to_json, probability_text, write_results
from translate.dataclass import dataclass

__all__ = ["Failure", "check_case", "expectations"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A flow whose outcome differs from the expected one, and a message about it."""

    flow_id: str
    message: str


def expectations(case: Case) -> str:
    """Return the text of ``expect.jsonl`` for a case, computed by the simulator."""
    return write_results((r, f.family) for f, r in zip(case.flows, _simulated(case), strict=True))


def check_case(case: Case) -> tuple[Failure, ...]:
    """Return every flow whose expectation differs from the simulator's result."""
    if case.expected is None:
        return (Failure("*", "no expectations yet; nfparity corpus record writes them"),)
    wanted = {r.flow_id: r for r in case.expected}
    failures = []
    for flow, result in zip(case.flows, _simulated(case), strict=True):
        expected = wanted[flow.id]
        if _as_set(expected) == _as_set(result):
            continue
        missing = [b for b in expected.branches if b not in result.branches]
        new = [b for b in result.branches if b not in expected.branches]
        message = "; ".join(
            [f"expected {_text(b, case)}" for b in missing] + [f"found {_text(b, case)}" for b in new]
        )
        failures.append(Failure(flow.id, message or "the notes differ"))
    return tuple(failures)


def _simulated(case: Case) -> list[FlowResult]:
    simulation = Simulation(Job(rules=case.ruleset, node=case.node))
    return [simulation.simulate(f) for f in case.flows]


def _as_set(result: FlowResult) -> tuple[frozenset[OutcomeBranch], tuple[str, ...]]:
    return frozenset(result.branches), result.notes


def _text(branch: OutcomeBranch, case: Case) -> str:
    family = case.ruleset.family
    outcomes = [outcome_to_json(o, family) for o in branch.outcomes]
    return json.dumps({"probability": probability_text(branch.probability), "outcomes": outcomes})
