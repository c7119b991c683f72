"""The number of runs per flow, chosen so that the report does not depend on random choices.

The reference computes every path of a flow and its probability. The chance that some path does not occur in a
number of runs is at most the sum of ``(1 - probability) ** runs`` over the paths; the number of runs is
chosen so that this is at most :attr:`Sampling.miss`. A backend whose rules the reference does not know
reports the probability of its least likely path (:attr:`FlowResult.rarest`). If a flow takes an unexpected
path, it runs until each path has occurred twice, and at least as if there were two paths. It does not run
again if the backend has seen that no rule on its way chooses at random or has state
(:attr:`FlowResult.settled`), and if no source port was chosen: every run would be equal.

Paths rarer than :data:`RAREST` are ignored. No flow sends more than :data:`MOST_PACKETS` packets. A flow that
waits (``Pause``) runs once, because it waits in real time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Final

from backends.model.flow import Flow, Pause, Repeated
from backends.model.outcome import FlowResult, OutcomeBranch
from harness.diff.compare import DifferentPath, differing_paths
from harness.diff.paths import normal_paths
from translate.dataclass import dataclass
from translate.ir import Protocol

__all__ = [
    "CERTAIN",
    "MISS",
    "MOST_PACKETS",
    "ONCE",
    "RAREST",
    "RESEMBLED_MISS",
    "Sampling",
    "Share",
    "is_settled",
    "runs_needed",
    "with_runs",
]

MISS: Final = 1e-9
"""The accepted chance, per flow and backend, of missing a path."""

RESEMBLED_MISS: Final = 1e-3
"""The accepted chance of missing a path that no rule has, at one place and in flows that others resemble.

A path that the rules have is waited for until the chance is :data:`MISS`, also in these flows.
"""

RAREST: Final = Fraction(1, 1000)
"""The probability below which paths are ignored."""

_USUALLY: Final = 0.2
"""The chance that the first runs of a flow that shares them miss a path, so that it has to run again."""

MOST_PACKETS: Final = 32_768
"""The limit of packets sent for one flow: a service of 1,000 endpoints needs 27,600."""


@dataclass(frozen=True, slots=True)
class Share:
    """The part of one of ``among`` flows in the first runs that one of them would need.

    After these runs, the chance of missing some path is at most ``miss``, or that of the :class:`Sampling`
    if it is greater. The flow goes on until it has shown the expected paths with the indices ``needed``; None
    means all of them.
    """

    among: int
    miss: float = MISS
    needed: frozenset[int] | None = None

    def needs(self, path: int) -> bool:
        """Return whether the flow has to show the expected path at an index."""
        return self.needed is None or path in self.needed


@dataclass(frozen=True, slots=True)
class Sampling:
    """The choice of the number of runs. If ``miss`` is 1, every flow is run once.

    ``least`` is the minimum for flows with random outcomes.
    """

    miss: float = MISS
    least: int = 1

    def first_runs(self, flow: Flow, expected: FlowResult) -> int:
        """Return the number of runs that the expected outcomes of a flow require."""
        if _waits(flow) or len(expected.branches) < 2:
            return 1
        return max(self.least, self._bounded(flow, runs_needed(_probabilities(expected.branches), self.miss)))

    def with_first_runs(self, flow: Flow, expected: FlowResult) -> Flow | Repeated:
        """Return the flow for a backend, with the number of its runs."""
        return with_runs(flow, self.first_runs(flow, expected), expected)

    def shared_runs(self, flow: Flow, expected: FlowResult, share: Share) -> int:
        """Return the number of first runs of each of the flows that share those of one.

        They are not fewer than usually show what the flow needs to show: a few more at once cost less than
        another round.
        """
        most = self.first_runs(flow, expected)
        if most == 1:
            return 1
        runs = runs_needed(_probabilities(expected.branches), max(self.miss, share.miss))
        needed = [branch for place, branch in enumerate(expected.branches) if share.needs(place)]
        usually = runs_needed(_probabilities(needed), _USUALLY)
        return min(most, max(usually, math.ceil(runs / share.among)))

    def differing(self, flow: Flow, expected: FlowResult, observed: FlowResult) -> tuple[DifferentPath, ...]:
        """Return the differences of a flow's observed outcomes from the expected ones."""
        return tuple(differing_paths(flow, expected, observed, miss=self.miss if self.miss < 1 else 0.0))

    def further_runs(self, flow: Flow, expected: FlowResult, observed: FlowResult, *, differs: bool) -> int:
        """Return the number of further runs that the observed outcomes require; 0 if they are enough."""
        if self.miss >= 1 or _waits(flow):
            return 0
        wanted = observed.runs
        if observed.rarest < 1:
            wanted = max(wanted, runs_needed(_alike(math.ceil(1 / observed.rarest)), self.miss))
        if differs and not is_settled(observed):
            # A port that differs between two runs with the same path was picked at random.
            paths = normal_paths(flow, observed.branches, runs=observed.runs, expected=expected)
            wanted = max(wanted, runs_needed(_alike(max(2, len(paths))), self.miss, times=2))
            wanted = max(wanted, runs_needed(_probabilities(expected.branches), self.miss, times=2))
        return max(0, self._bounded(flow, wanted) - observed.runs)

    def _bounded(self, flow: Flow, runs: int) -> int:
        return max(1, min(runs, MOST_PACKETS // len(flow.steps)))


CERTAIN: Final = Sampling()
"""Run until every path has occurred, except for a chance of :data:`MISS`."""
ONCE: Final = Sampling(miss=1.0)
"""Run every flow once."""


def with_runs(flow: Flow, times: int, expected: FlowResult) -> Flow | Repeated:
    """Return the flow for a backend that runs it some times.

    A flow as it is runs once. Backends send UDP flows of that form faster, but expect them to fill lists.
    """
    once = times == 1 and not expected.filled and flow.first.packet.proto == Protocol.UDP
    return flow if once else Repeated(flow, times, expected.lists, filled=expected.filled)


def _waits(flow: Flow) -> bool:
    return any(isinstance(step, Pause) for step in flow.steps)


def is_settled(observed: FlowResult) -> bool:
    """Return whether every run would have the same outcome: no rule and no choice of a port is random."""
    return (
        observed.settled
        and not observed.notes
        and len(observed.branches) == 1
        and not any(outcome.snat or outcome.quoted is not None for outcome in observed.branches[0].outcomes)
    )


def _probabilities(branches: Iterable[OutcomeBranch]) -> tuple[Fraction, ...]:
    return tuple(sorted([branch.probability for branch in branches]))


def _alike(paths: int) -> tuple[Fraction, ...]:
    return (Fraction(1, paths),) * paths


@lru_cache(maxsize=1024)
def runs_needed(probabilities: tuple[Fraction, ...], miss: float, times: int = 1) -> int:
    """Return the number of runs in which each path occurs once, or twice if ``times`` is 2.

    The chance that some path occurs less often is at most ``miss``. ``probabilities`` are those of the paths.
    Those below :data:`RAREST` count as :data:`RAREST`, or not at all if their sum is below it.
    """
    if sum(chance for chance in probabilities if chance < RAREST) < RAREST:
        probabilities = tuple(chance for chance in probabilities if chance >= RAREST)
    misses = [float(1 - max(chance, RAREST)) for chance in probabilities if chance < 1]
    if not misses or miss >= 1:
        return times
    low, high = times, math.ceil(math.log(miss / len(misses) / times) / math.log(max(misses))) * times
    while low < high:
        middle = (low + high) // 2
        if _missed(misses, middle, times) <= miss:
            high = middle
        else:
            low = middle + 1
    return max(times, low)


def _missed(misses: Iterable[float], runs: int, times: int) -> float:
    """Return the sum of the chances of paths to occur less than ``times`` times."""
    if times == 1:
        return math.fsum(share**runs for share in misses)
    return math.fsum(share**runs + runs * (1 - share) * share ** (runs - 1) for share in misses)
