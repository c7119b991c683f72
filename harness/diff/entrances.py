"""The flows that run once, because another flow with the same choice runs until each outcome is seen.

A generated corpus has the same flows for all services of a class, with their own constants
(:mod:`harness.corpus.generate`). A flow to a service of five endpoints needs a hundred runs, and each service
has some twenty flows. The flows to the first service of each class get all their runs. The flows to other
services are grouped: the flows of a group enter the rules at the same place, and choose between the same
outcomes. Only the shortest flow of a group runs until it has shown all outcomes; the others run once.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from backends.model.flow import Flow, Send
from backends.model.outcome import FlowResult, Outcome
from backends.model.withfields import with_fields
from harness.diff.agreement import acting_steps

__all__ = ["run_briefly"]


def run_briefly(
    flows: Sequence[Flow], expected: Sequence[FlowResult], alike: Container[str]
) -> frozenset[str]:
    """Return the ids of the flows among ``alike`` that need one run only.

    ``expected`` has the simulated result of each flow. A flow gets all its runs if the rules leave its
    outcome open, or if one of its runs affects the next.
    """
    entrances: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    for number, (flow, result) in enumerate(zip(flows, expected, strict=True)):
        certain = len(result.branches) < 2 or result.is_open or result.dependent
        if flow.id in alike and not certain:
            entrances.setdefault(_entrance(flow, result), []).append((len(flow.steps), number))
    return frozenset(flows[number].id for group in entrances.values() for _, number in sorted(group)[1:])


def _entrance(flow: Flow, result: FlowResult) -> tuple[object, ...]:
    """Return where the connections of a flow enter the rules, and the outcomes that they choose between.

    Answers and later packets follow the choice of their connection.
    """
    sends = [(at, step) for at, (_, step) in enumerate(acting_steps(flow)) if isinstance(step, Send)]
    places = [(s.entry is None, s.packet.proto, s.packet.dst, s.packet.dport) for _, s in sends]
    choices = {tuple([_but_sender(way.outcomes[at]) for at, _ in sends]) for way in result.branches}
    return tuple(places), frozenset(choices)


def _but_sender(outcome: Outcome) -> Outcome:
    """Return an outcome without the sender's own address and port; addresses and ports set by rules stay."""
    return outcome if outcome.snat else with_fields(outcome, src=None, sport=None)
