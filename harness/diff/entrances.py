"""The flows that need few runs, because other flows enter the rules at the same place.

A generated corpus has the same flows for all services of a class, with their own constants
(:mod:`harness.corpus.generate`). A flow to a service of five endpoints needs a hundred runs, and each service
has some twenty flows. They are grouped: the flows of a group enter the rules at the same place, and choose
between the same outcomes. The flows of a group that go to the first service of a class, or to a service of
none, share the runs that one of them would need, and go on only until each has shown all its outcomes. Of the
flows to other services, only the shortest of a group does so; the others run once.

A place has a few groups, because what a rule does may depend on the sender: an endpoint that uses its own
service is masqueraded if it is chosen itself. At the places of those other services, the shortest flows of
all groups share the runs of one. These are fewer than elsewhere (:data:`.sampling.RESEMBLED_MISS`), because
only an outcome that no rule has may be missed: each of the flows goes on until it has shown every expected
outcome that none of the earlier ones had to show.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from backends.model.flow import Flow, Send
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, Verdict
from backends.model.packet import Port
from harness.diff.agreement import acting_steps
from harness.diff.sampling import RESEMBLED_MISS, Share
from translate.dataclass import dataclass, replace

__all__ = ["ALONE", "SharedRuns", "lightly", "shared_runs"]

_Places = tuple[tuple[bool, int, int, Port | None], ...]
"""For each Send of a flow: whether it is made on the node, and its protocol, destination and port."""
_Destinations = tuple[tuple[int, int, Port | None], ...]


class _End(NamedTuple):
    """The outcome of a Send without the sender's own address and port; ``comes_back``: to the sender itself.

    An endpoint that uses its own service is masqueraded where it chooses itself, by a rule of its own. A
    client elsewhere may have the same outcome.
    """

    outcome: Outcome
    comes_back: bool


_Choice = tuple[_End, ...]
"""The outcomes of a path's Sends."""


class _Copy(NamedTuple):
    """A flow that others resemble, and what it shows of each of its paths."""

    length: int
    flow_id: str
    choices: list[_Choice]


@dataclass(frozen=True, slots=True)
class SharedRuns:
    """Flows by id: those that run once, and those that share runs, each with its share."""

    briefly: frozenset[str]
    together: Mapping[str, Share]


ALONE: Final = SharedRuns(frozenset(), {})
"""Every flow gets all its runs."""


def shared_runs(flows: Sequence[Flow], expected: Sequence[FlowResult], alike: Container[str]) -> SharedRuns:
    """Return the flows that need fewer runs, because others enter the rules at the same place.

    ``expected`` has the simulated result of each flow; ``alike`` has the ids of flows that others resemble. A
    flow gets all its runs if the rules leave its outcome open, or if one of its runs affects the next.
    """
    copies: dict[_Places, dict[frozenset[_Choice], list[_Copy]]] = {}
    originals: dict[tuple[_Places, frozenset[_Choice]], list[str]] = {}
    for flow, result in zip(flows, expected, strict=True):
        if len(result.branches) < 2 or result.is_open or result.dependent:
            continue
        places, choices = _places(flow), _choices(flow, result)
        if flow.id in alike:
            copy = _Copy(len(flow.steps), flow.id, choices)
            copies.setdefault(places, {}).setdefault(frozenset(choices), []).append(copy)
        else:
            originals.setdefault((places, frozenset(choices)), []).append(flow.id)
    together = {flow_id: Share(len(group)) for group in originals.values() for flow_id in group}
    briefly: set[str] = set()
    for groups in copies.values():
        shown: set[_Choice] = set()
        for group in groups.values():
            shortest = min(group, key=attrgetter("length"))
            needed = frozenset(at for at, choice in enumerate(shortest.choices) if choice not in shown)
            shown.update(shortest.choices)
            together[shortest.flow_id] = Share(len(groups), RESEMBLED_MISS, needed)
            briefly.update(copy.flow_id for copy in group if copy is not shortest)
    return SharedRuns(frozenset(briefly), together)


def lightly(flows: Sequence[Flow], expected: Sequence[FlowResult], alike: Container[str]) -> list[bool]:
    """Return for each flow whether it belongs to a light trial of rules that were tested before.

    Of the flows that others resemble, the shortest to each destination does, in turn the shortest one that
    is received and the shortest one that is made on the node. The others, and flows that no rule affects, do
    not.
    """
    shortest: dict[_Destinations, dict[bool, tuple[int, int]]] = {}
    chosen = []
    for number, (flow, result) in enumerate(zip(flows, expected, strict=True)):
        chosen.append(flow.id not in alike or result.is_open)
        if not chosen[-1] and any(map(_is_affected, result.branches)):
            made_here, length = flow.first.entry is None, (len(flow.steps), number)
            of = shortest.setdefault(tuple([place[1:] for place in _places(flow)]), {})
            of[made_here] = min(length, of.get(made_here, length))
    for turn, of in enumerate(shortest.values()):
        _, number = of.get(turn % 2 == 1) or next(iter(of.values()))
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


def _choices(flow: Flow, result: FlowResult) -> list[_Choice]:
    """Return the outcomes that the connections of a flow choose between, branch by branch.

    Answers and later packets follow the choice of their connection.
    """
    sends = [(at, step) for at, (_, step) in enumerate(acting_steps(flow)) if isinstance(step, Send)]
    return [
        tuple([_End(_but_sender(way.outcomes[at]), way.outcomes[at].dst == s.packet.src) for at, s in sends])
        for way in result.branches
    ]


def _but_sender(outcome: Outcome) -> Outcome:
    """Return an outcome without the sender's own address and port; addresses and ports set by rules stay."""
    return outcome if outcome.snat else replace(outcome, src=None, sport=None)
