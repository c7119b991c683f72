"""Groups of nodes with the same findings, so that a report on a thousand nodes is short."""

from __future__ import annotations

from collections.abc import Sequence

from harness.status import worst_status
from nfparity.assess.fleet.node import NOT_TESTED, Answer, Failure, NodeDifference
from translate.dataclass import dataclass

__all__ = ["Alike", "Fleet", "Spread", "fleet_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Nodes with the same findings, or with the same failure."""

    answers: tuple[Answer, ...]
    differences: tuple[NodeDifference, ...] = ()
    failure: Failure | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the snapshots."""
        return tuple(answer.path for answer in self.answers)

    def subjects(self) -> dict[str, tuple[str, ...]]:
        """Return the subjects of each difference, without repetition over the families."""
        by_id: dict[str, dict[str, None]] = {}
        for difference in self.differences:
            by_id.setdefault(difference.id, {})[difference.subject] = None
        return {k: tuple(subjects) for k, subjects in by_id.items()}

    def traffic_seen(self, k: str) -> int | None:
        """Return the number of nodes with traffic for difference ``k``; None if no node has counters."""
        counts = [_used(answer, k) for answer in self.answers]
        known = [count for count in counts if count is not None]
        return sum(known) if known else None


def _used(answer: Answer, k: str) -> bool | None:
    known = [d.packets for d in answer.differences if d.id == k and d.packets is not None]
    return any(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The number of nodes and of subjects with one difference."""

    id: str
    title: str
    nodes: int
    subjects: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The findings of all nodes. ``alike`` lists groups with findings first, the largest first.

    ``shared`` are the findings common to all groups with findings, None if there are fewer than two such
    groups. They are printed once, so that the findings that differ between nodes stand out.
    """

    alike: tuple[Alike, ...]
    shared: Alike | None
    spread: tuple[Spread, ...]
    nodes: int
    flows: int
    options: tuple[str, ...] = ()

    @property
    def failed(self) -> int:
        """The number of snapshots that could not be assessed."""
        return sum(len(group.answers) for group in self.alike if group.failure is not None)

    @property
    def changes(self) -> bool:
        """True if any node has a finding."""
        return any(each.id != NOT_TESTED for group in self.alike for each in group.differences)

    @property
    def status(self) -> int:
        """The exit status: the worst of all nodes, because a failed node may have any finding."""
        return worst_status(answer.status for group in self.alike for answer in group.answers)


def fleet_of(answers: Sequence[Answer], options: tuple[str, ...] = ()) -> Fleet:
    """Group the answers."""
    groups: dict[tuple[object, ...], list[Answer]] = {}
    for answer in answers:
        groups.setdefault(_key(answer), []).append(answer)
    alike = [
        Alike(answers=tuple(g), differences=g[0].differences, failure=_failure_of(g[0]))
        for g in groups.values()
    ]
    alike.sort(key=lambda group: (group.failure is not None, not group.differences, -len(group.answers)))
    return Fleet(
        alike=tuple(alike),
        shared=_shared([group for group in alike if group.differences]),
        spread=_spread(answers),
        nodes=len(answers),
        flows=sum(answer.flows for answer in answers),
        options=options,
    )


def _key(answer: Answer) -> tuple[object, ...]:
    failure = _failure_of(answer)
    return (answer.differences, None) if failure is None else (failure.status, failure.reason)


def _failure_of(answer: Answer) -> Failure | None:
    """Return the failure without the name of the node, so that equal failures compare equal."""
    failure = answer.failure
    if failure is None:
        return None
    reason = failure.reason.removeprefix(f"{answer.path}: ").replace(answer.path, "…")
    return Failure(failure.status, reason, failure.again)


def _shared(groups: Sequence[Alike]) -> Alike | None:
    if len(groups) < 2:
        return None
    common = set(groups[0].differences).intersection(*(group.differences for group in groups[1:]))
    answers = tuple(answer for group in groups for answer in group.answers)
    return Alike(answers=answers, differences=tuple(sorted(common))) if common else None


def _spread(answers: Sequence[Answer]) -> tuple[Spread, ...]:
    nodes: dict[str, int] = {}
    subjects: dict[str, set[str]] = {}
    titles: dict[str, str] = {}
    for answer in answers:
        titles.update(answer.titles)
        for k in answer.ids:
            nodes[k] = nodes.get(k, 0) + 1
        for difference in answer.differences:
            subjects.setdefault(difference.id, set()).add(difference.subject)
    return tuple(
        Spread(id=k, title=titles.get(k, ""), nodes=nodes[k], subjects=len(subjects[k]))
        for k in sorted(nodes)
    )
