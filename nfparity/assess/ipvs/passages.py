"""Passages: what happens to a connection's first packet and its answer, compared before and after.

Both modes choose among the endpoints of a service, by different rules. Passages are therefore compared for
each endpoint, and the choices of one flow's connections separately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from backends.model.outcome import FlowResult, Outcome
from nfparity.assess.fate import Fate, fate_of
from translate.dataclass import dataclass, replace

__all__ = ["Choice", "Passage", "Target", "differing", "passages_of", "runs_of"]

Target = tuple[int, int | None]
"""The address and port to which a service sends a connection."""

Choice = tuple[int, ...]
"""The numbers of connections of one run to each chosen target, the greatest first."""


@dataclass(frozen=True, slots=True)
class Passage:
    """The outcome of a connection's first packet, and of the answer; None without an answer in the flow.

    Ports of the client are left out: they differ between connections, and masquerading chooses them at
    random.
    """

    first: Outcome
    answer: Outcome | None = None

    @property
    def target(self) -> Target | None:
        """The endpoint that was chosen; None if the packet was not translated."""
        if fate_of(self.first) is not Fate.SERVICE or self.first.dst is None:
            return None
        port = self.first.dport
        return self.first.dst, port if isinstance(port, int) else None


def runs_of(result: FlowResult, *, answered: bool) -> Iterator[tuple[Passage, ...]]:
    """Yield the passages of each observed run; ``answered``: each packet of the flow has an answer."""
    for branch in result.branches:
        outcomes = branch.outcomes
        if answered:
            pairs = zip(outcomes[::2], outcomes[1::2], strict=True)
            yield tuple(Passage(_first(first), _answer(answer)) for first, answer in pairs)
        else:
            yield tuple(Passage(_first(first)) for first in outcomes)


def _first(outcome: Outcome) -> Outcome:
    return replace(outcome, sport=None)


def _answer(outcome: Outcome) -> Outcome:
    return replace(outcome, dport=None)


def passages_of(runs: Iterable[tuple[Passage, ...]]) -> dict[Target | None, tuple[Passage, ...]]:
    """Return the different passages of all runs, by target."""
    by_target: dict[Target | None, dict[Passage, None]] = {}
    for run in runs:
        for passage in run:
            by_target.setdefault(passage.target, {})[passage] = None
    return {target: tuple(passages) for target, passages in by_target.items()}


def differing(
    before: dict[Target | None, tuple[Passage, ...]],
    after: dict[Target | None, tuple[Passage, ...]],
    *,
    reachable: frozenset[Target],
) -> Iterator[tuple[Passage, Passage]]:
    """Yield the pairs of passages, before and after, that differ: one for each kind of difference.

    ``reachable`` are the targets that the service has before the change; those that the scheduler did not
    choose for this client are no difference.
    """
    for target in before.keys() & after.keys():
        if set(before[target]) != set(after[target]):
            mine = [p for p in before[target] if p not in after[target]] or before[target]
            other = [p for p in after[target] if p not in before[target]] or after[target]
            yield mine[0], other[0]
    for target in before.keys() - after.keys():
        yield before[target][0], _closest(before[target][0], after)
    for target in after.keys() - before.keys():
        if target is None or target not in reachable:
            yield _closest(after[target][0], before), after[target][0]


def _closest(passage: Passage, others: dict[Target | None, tuple[Passage, ...]]) -> Passage:
    """Return a passage of the same fate if there is one, otherwise any."""
    known = [other for group in others.values() for other in group]
    same = [other for other in known if fate_of(other.first) is fate_of(passage.first)]
    return (same or known)[0]


def choice_of(run: tuple[Passage, ...]) -> Choice | None:
    """Return the numbers of connections to each target; None if a connection reached none."""
    targets = [passage.target for passage in run]
    if None in targets:
        return None
    return tuple(sorted(Counter(targets).values(), reverse=True))
