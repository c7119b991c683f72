"""Nodes with the same findings together: what there is to read of a thousand nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.status import worst_status
from nfparity.assess.fleet.node import NOT_TESTED, Answer, Failure, Found

__all__ = ["Alike", "Fleet", "Spread", "fleet_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Nodes of which the same is found, or that failed for the same reason."""

    answers: tuple[Answer, ...]
    found: tuple[Found, ...] = ()
    failure: Failure | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The snapshots."""
        return tuple(one.path for one in self.answers)

    def subjects(self) -> dict[str, tuple[str, ...]]:
        """Return by id what it is found of, each once over the families."""
        by_id: dict[str, dict[str, None]] = {}
        for one in self.found:
            by_id.setdefault(one.id, {})[one.subject] = None
        return {k: tuple(subjects) for k, subjects in by_id.items()}

    def in_use(self, k: str) -> int | None:
        """Return on how many nodes packets met what ``k`` is about; None: no node's counters say."""
        counts = [_used(answer, k) for answer in self.answers]
        known = [one for one in counts if one is not None]
        return sum(known) if known else None


def _used(answer: Answer, k: str) -> bool | None:
    known = [one.packets for one in answer.found if one.id == k and one.packets is not None]
    return any(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """On how many nodes a difference is found, and for how many subjects in all."""

    id: str
    title: str
    nodes: int
    subjects: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What was found of all nodes: ``alike`` has those with findings first, the largest group first.

    ``shared`` is what all groups with findings have in common, None when there are fewer than two such:
    nodes differ in the endpoints that they have, and what they differ in would be lost among the rest.
    """

    alike: tuple[Alike, ...]
    shared: Alike | None
    spread: tuple[Spread, ...]
    nodes: int
    flows: int
    options: tuple[str, ...] = ()

    @property
    def failed(self) -> int:
        """How many snapshots could not be assessed."""
        return sum(len(one.answers) for one in self.alike if one.failure is not None)

    @property
    def changes(self) -> bool:
        """Whether anything was found of any node."""
        return any(each.id != NOT_TESTED for one in self.alike for each in one.found)

    @property
    def status(self) -> int:
        """The exit status: the worst of any node's, since of what failed nothing is known."""
        return worst_status(answer.status for one in self.alike for answer in one.answers)


def fleet_of(answers: Sequence[Answer], options: tuple[str, ...] = ()) -> Fleet:
    """Group the answers."""
    groups: dict[tuple[object, ...], list[Answer]] = {}
    for answer in answers:
        groups.setdefault(_key(answer), []).append(answer)
    alike = [Alike(answers=tuple(g), found=g[0].found, failure=_told(g[0])) for g in groups.values()]
    alike.sort(key=lambda one: (one.failure is not None, not one.found, -len(one.answers)))
    return Fleet(
        alike=tuple(alike),
        shared=_shared([one for one in alike if one.found]),
        spread=_spread(answers),
        nodes=len(answers),
        flows=sum(answer.flows for answer in answers),
        options=options,
    )


def _key(answer: Answer) -> tuple[object, ...]:
    failure = _told(answer)
    return (answer.found, None) if failure is None else (failure.status, failure.reason)


def _told(answer: Answer) -> Failure | None:
    """A failure in words that do not name the node, so that equal ones are equal."""
    failure = answer.failure
    if failure is None:
        return None
    reason = failure.reason.removeprefix(f"{answer.path}: ").replace(answer.path, "…")
    return Failure(failure.status, reason, failure.again)


def _shared(groups: Sequence[Alike]) -> Alike | None:
    if len(groups) < 2:
        return None
    common = set(groups[0].found).intersection(*(one.found for one in groups[1:]))
    answers = tuple(answer for one in groups for answer in one.answers)
    return Alike(answers=answers, found=tuple(sorted(common))) if common else None


def _spread(answers: Sequence[Answer]) -> tuple[Spread, ...]:
    nodes: dict[str, int] = {}
    subjects: dict[str, set[str]] = {}
    titles: dict[str, str] = {}
    for answer in answers:
        titles.update(answer.titles)
        for k in answer.ids:
            nodes[k] = nodes.get(k, 0) + 1
        for one in answer.found:
            subjects.setdefault(one.id, set()).add(one.subject)
    return tuple(
        Spread(id=k, title=titles.get(k, ""), nodes=nodes[k], subjects=len(subjects[k]))
        for k in sorted(nodes)
    )
