"""Comparison of a flow's observed outcomes with the reference's.

The reference gives a set of branches, in which a port that the kernel picks is a class of ports. A backend
agrees if every observed path is in the set. Otherwise the path is compared with the *closest* branch, the one
with the fewest different fields. If a backend has run a flow often enough, a branch that was never observed
is a difference, too. If the rules leave the outcome open (a match that is not modelled), a backend agrees
with any of the possible outcomes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final

from backends.model.flow import Again, Flow, Pause, Reply, Send
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, Verdict
from backends.model.packet import PortClass
from harness.diff.agreement import acting_steps, distance, port_agrees
from harness.diff.mismatch import Mismatch, different_fields, outcome_texts
from harness.diff.paths import normal_paths
from translate.dataclass import dataclass, fields, replace
from translate.ir import TcpFlag

__all__ = [
    "DifferentPath",
    "compare",
    "differing_paths",
    "matching_branches",
    "mismatches",
    "paths_shown",
    "step_text",
]

_BUT_SOURCE_PORT: Final = attrgetter(*(field.name for field in fields(Outcome) if field.name != "sport"))


@dataclass(frozen=True, slots=True)
class DifferentPath:
    """A path that the reference does not allow; ``path`` is None for a difference of the whole flow."""

    path: OutcomeBranch | None
    mismatches: tuple[Mismatch, ...]


def compare(
    flow: Flow, expected: FlowResult, observed: FlowResult, *, miss: float = 0.0
) -> tuple[Mismatch, ...]:
    """Return every mismatch between ``observed`` and ``expected``; empty: parity.

    Each is reported once, even if it occurs on several paths. An expected path that was never observed is a
    mismatch if the chance of that is at most ``miss``. Notes of a backend (a wrong checksum, an unexpected
    frame) are mismatches, too.
    """
    return mismatches(differing_paths(flow, expected, observed, miss=miss))


def mismatches(paths: Iterable[DifferentPath]) -> tuple[Mismatch, ...]:
    """Return the mismatches of some paths, each once."""
    distinct: dict[str, Mismatch] = {}
    for path in paths:
        for mismatch in path.mismatches:
            distinct.setdefault(repr(replace(mismatch, branch=None)), mismatch)
    return tuple(distinct.values())


def differing_paths(
    flow: Flow, expected: FlowResult, observed: FlowResult, *, miss: float = 0.0
) -> Iterator[DifferentPath]:
    """Yield the mismatches of :func:`compare` by path, in an order that does not depend on random choices."""
    if (
        len(expected.branches) == len(observed.branches) == 1
        and expected.branches[0].outcomes == observed.branches[0].outcomes
        and not observed.notes
    ):
        return  # most flows
    matched: set[int] = set()
    unexpected: list[OutcomeBranch] = []
    moved: dict[str, Mismatch] = {}
    wanted = len(acting_steps(flow))
    known = _BranchIndex(expected)
    comes_again = any(isinstance(step, Again) for step in flow.steps)
    for branch in observed.branches:
        if len(branch.outcomes) != wanted:
            cut = Mismatch(step=None, field="outcomes", expected=wanted, observed=len(branch.outcomes))
            yield DifferentPath(None, (cut,))
            return
        matching = known.matching(branch) or matching_branches(flow, expected, branch)
        matched.update(matching)
        if not matching:
            unexpected.append(branch)
        elif comes_again:
            likeliest = min(matching, key=lambda i: (-expected.branches[i].probability, i))
            ports = _moved_ports(flow, expected.branches[likeliest], branch, likeliest)
            moved.update((repr(mismatch), mismatch) for mismatch in ports)
    for branch in normal_paths(flow, unexpected, runs=observed.runs, expected=expected):
        closest = _closest(flow, expected, branch)
        if closest is None:
            none = Mismatch(step=None, field="branches", expected=0, observed=1)
            yield DifferentPath(branch, (none,))
            continue
        yield DifferentPath(
            branch, tuple(different_fields(flow, expected.branches[closest], branch, closest))
        )
    for key in sorted(moved):
        yield DifferentPath(None, (moved[key],))
    if not unexpected:
        # Otherwise the missing branches may be the differing paths.
        for missing in _never_seen(flow, expected, observed, matched, miss):
            yield DifferentPath(None, (missing,))
    for note in observed.notes:
        yield DifferentPath(None, (Mismatch(step=None, field="note", expected=None, observed=note),))


def paths_shown(flow: Flow, expected: FlowResult, observed: FlowResult) -> set[int]:
    """Return the indices of the expected paths that were observed."""
    known = _BranchIndex(expected)
    return {
        place
        for branch in observed.branches
        for place in known.matching(branch) or matching_branches(flow, expected, branch)
    }


class _BranchIndex:
    """An index of the expected branches, by their outcomes without source ports."""

    def __init__(self, expected: FlowResult) -> None:
        self._branches = expected.branches
        self._places: dict[tuple[object, ...], list[int]] = {}
        for place, branch in enumerate(expected.branches):
            self._places.setdefault(_but_source_ports(branch), []).append(place)

    def matching(self, observed: OutcomeBranch) -> tuple[int, ...]:
        """Return the indices of matching branches, without the special case of :mod:`.agreement`."""
        return tuple(
            place
            for place in self._places.get(_but_source_ports(observed), ())
            if all(
                port_agrees(want.sport, have.sport)
                for want, have in zip(self._branches[place].outcomes, observed.outcomes, strict=True)
            )
        )


def _but_source_ports(branch: OutcomeBranch) -> tuple[object, ...]:
    return tuple([_BUT_SOURCE_PORT(outcome) for outcome in branch.outcomes])


def _closest(flow: Flow, expected: FlowResult, observed: OutcomeBranch) -> int | None:
    """Return the index of the expected branch with the fewest different fields, the likeliest of several."""
    return min(
        range(len(expected.branches)),
        key=lambda i: (distance(flow, expected.branches[i], observed), -expected.branches[i].probability, i),
        default=None,
    )


def _never_seen(
    flow: Flow, expected: FlowResult, observed: FlowResult, matched: set[int], miss: float
) -> Iterator[Mismatch]:
    """Yield expected paths that are likely enough to occur in the runs, but were not observed.

    Nothing is reported if the runs are not independent, if the probabilities are guesses, or if the rules
    leave open which paths exist.
    """
    if not miss or expected.dependent or expected.guessed or observed.dependent or expected.is_open:
        return
    unseen = [i for i in range(len(expected.branches)) if i not in matched]
    for index in unseen:
        branch = expected.branches[index]
        if float(1 - branch.probability) ** observed.runs > miss:
            continue
        step, outcome = _first_apart(flow, branch, [expected.branches[i] for i in sorted(matched)])
        yield Mismatch(
            step=step,
            field="path",
            expected=outcome_texts(outcome, flow.family),
            observed="never seen",
            branch=index,
        )


def _first_apart(flow: Flow, branch: OutcomeBranch, others: Sequence[OutcomeBranch]) -> tuple[int, Outcome]:
    """Return the first step at which a branch differs from all others, or the last step if there is none."""
    steps = [i for i, _ in acting_steps(flow)]
    place = 0
    for place, outcome in enumerate(branch.outcomes):
        if all(other.outcomes[place] != outcome for other in others):
            break
    return steps[place], branch.outcomes[place]


def matching_branches(flow: Flow, expected: FlowResult, observed: OutcomeBranch) -> tuple[int, ...]:
    """Return the indices of the expected branches that ``observed`` agrees with."""
    return tuple(
        i
        for i, branch in enumerate(expected.branches)
        if _may_agree(branch, observed) and not distance(flow, branch, observed)
    )


def _may_agree(expected: OutcomeBranch, observed: OutcomeBranch) -> bool:
    """Return False for branches that differ in a field that is always compared; this is fast."""
    for want, have in zip(expected.outcomes, observed.outcomes, strict=False):
        if want.verdict is Verdict.UNKNOWN:
            return True
        if want.dst != have.dst or want.out != have.out or want.verdict is not have.verdict:
            return False
    return True


def step_text(flow: Flow, step: int | None) -> str:
    """Return a short description of a step of a flow."""
    if step is None:
        return "the flow"
    acting = flow.steps[step]
    kind = "first packet" if step == 0 else type(acting).__name__.lower()
    return f"{kind} {acting.packet}" if isinstance(acting, Send) else f"{kind} (step {step})"


def _moved_ports(
    flow: Flow, expected: OutcomeBranch, observed: OutcomeBranch, index: int
) -> Iterator[Mismatch]:
    """Check that later packets of a connection keep the port that the kernel picked for it.

    There is no check after a pause, an RST or another SYN, because the kernel may begin a new connection.
    """
    bound: Outcome | None = None
    outcomes = iter(zip(expected.outcomes, observed.outcomes, strict=True))
    for i, step in enumerate(flow.steps):
        if isinstance(step, Pause):
            bound = None
            continue
        want, have = next(outcomes)
        if isinstance(step, Again | Reply) and _restarts(step):
            bound = None
        elif isinstance(step, Send):
            bound = have if isinstance(want.sport, PortClass) else None
        elif isinstance(step, Again) and bound is not None and isinstance(want.sport, PortClass):
            yield from _moved(i, bound, have, index)


def _moved(step: int, before: Outcome, now: Outcome, index: int) -> Iterator[Mismatch]:
    if before.sport != now.sport:
        yield Mismatch(
            step=step,
            field="sport",
            expected="the port of the previous packet",
            observed="another one",
            branch=index,
        )


def _restarts(step: Again | Reply) -> bool:
    flags = step.flags
    if flags is None:
        return False
    return bool(flags & TcpFlag.RST) or (isinstance(step, Again) and bool(flags & TcpFlag.SYN))
