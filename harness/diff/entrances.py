"""The flows that need few runs, because other flows enter the rules at the same place.

A generated corpus has the same flows for all services of a class, with their own constants
(:mod:`harness.corpus.generate`). A flow to a service of five endpoints needs a hundred runs, and each service
has some twenty flows. They are grouped: the flows of a group enter the rules at the same place, and choose
between the same outcomes. The flows of a group that go to the first service of a class, or to a service of
none, share the runs that one of them would need, and go on only until each has shown all its outcomes. Of the
flows to other services, only the shortest of a group does so; the others run once.

A place has a few groups, because what a rule does may depend on the sender: an endpoint that uses its own
service is masqueraded if it is chosen itself. At the places of those other services, the shortest flows of
all groups share the runs of one.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from backends.model.flow import Flow, Send
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, Verdict
from backends.model.withfields import with_fields
from harness.diff.agreement import acting_steps

__all__ = ["ALONE", "SharedRuns", "lightly", "shared_runs"]

_Places = tuple[object, ...]
_Choices = frozenset[tuple[Outcome, ...]]


@dataclass(frozen=True, slots=True)
class SharedRuns:
    """Flows by id: those that run once, and those that share runs, each with the number that share them."""

    briefly: frozenset[str]
    together: Mapping[str, int]


ALONE: Final = SharedRuns(frozenset(), {})
"""Every flow gets all its runs."""


def shared_runs(flows: Sequence[Flow], expected: Sequence[FlowResult], alike: Container[str]) -> SharedRuns:
    """Return the flows that need fewer runs, because others enter the rules at the same place.

    ``expected`` has the simulated result of each flow; ``alike`` has the ids of flows that others resemble. A
    flow gets all its runs if the rules leave its outcome open, or if one of its runs affects the next.
    """
    copies: dict[_Places, dict[_Choices, list[tuple[int, str]]]] = {}
    originals: dict[tuple[_Places, _Choices], list[str]] = {}
    for flow, result in zip(flows, expected, strict=True):
        if len(result.branches) < 2 or result.is_open or result.dependent:
            continue
        places, choices = _entrance(flow, result)
        if flow.id in alike:
            copies.setdefault(places, {}).setdefault(choices, []).append((len(flow.steps), flow.id))
        else:
            originals.setdefault((places, choices), []).append(flow.id)
    together = {flow_id: len(group) for group in originals.values() for flow_id in group}
    briefly: set[str] = set()
    for groups in copies.values():
        for group in groups.values():
            shortest = min(group, key=itemgetter(0))[1]
            together[shortest] = len(groups)
            briefly.update(flow_id for _, flow_id in group if flow_id != shortest)
    return SharedRuns(frozenset(briefly), together)


def lightly(flows: Sequence[Flow], expected: Sequence[FlowResult], alike: Container[str]) -> list[bool]:
    """Return for each flow whether it belongs to a light trial of rules that were tested before.

    Of the flows that others resemble, the shortest at each place does; the others, and flows that no rule
    affects, do not.
    """
    shortest: dict[_Places, tuple[int, int]] = {}
    chosen = []
    for number, (flow, result) in enumerate(zip(flows, expected, strict=True)):
        chosen.append(flow.id not in alike or result.is_open)
        if not chosen[-1] and any(map(_is_affected, result.branches)):
            places, length = _places(flow), (len(flow.steps), number)
            shortest[places] = min(length, shortest.get(places, length))
    for _, number in shortest.values():
        chosen[number] = True
    return chosen


def _is_affected(branch: OutcomeBranch) -> bool:
    """Return whether rules stop or change a packet of a branch."""
    return any(
        outcome.verdict not in (Verdict.FORWARD, Verdict.LOCAL)
        or outcome.dnat
        or outcome.snat
        or outcome.mark
        or outcome.tos
        for outcome in branch.outcomes
    )


def _places(flow: Flow) -> _Places:
    sends = [step for step in flow.steps if isinstance(step, Send)]
    return tuple([(s.entry is None, s.packet.proto, s.packet.dst, s.packet.dport) for s in sends])


def _entrance(flow: Flow, result: FlowResult) -> tuple[_Places, _Choices]:
    """Return where the connections of a flow enter the rules, and the outcomes that they choose between.

    Answers and later packets follow the choice of their connection.
    """
    sends = [at for at, (_, step) in enumerate(acting_steps(flow)) if isinstance(step, Send)]
    choices = {tuple([_but_sender(way.outcomes[at]) for at in sends]) for way in result.branches}
    return _places(flow), frozenset(choices)


def _but_sender(outcome: Outcome) -> Outcome:
    """Return an outcome without the sender's own address and port; addresses and ports set by rules stay."""
    return outcome if outcome.snat else with_fields(outcome, src=None, sport=None)
