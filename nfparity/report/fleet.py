"""Assessments of many nodes: a line for each node as it finishes, and a summary as text and JSON."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final, TextIO

from harness.counted import counted
from nfparity.assess.fleet.grouping import Alike, Fleet, Spread
from nfparity.assess.fleet.node import (
    LEAK,
    NOT_JUDGED,
    NOT_TESTED,
    ORDER,
    UNEXPLAINED,
    Answer,
    NodeDifference,
)
from nfparity.assess.fleet.paths import labels
from nfparity.assess.fleet.rollout import Readiness, rollout
from nfparity.report.orders import TITLE

__all__ = ["answer_line", "difference_title", "fleet_json", "print_fleet"]

_WIDTH: Final = 110
_SUBJECTS: Final = 6
_NODES: Final = 12
_OWN: Final = {
    LEAK: "traffic to service addresses leaves by the default route",
    ORDER: TITLE,
    UNEXPLAINED: "differences that are not in the catalogue",
    NOT_JUDGED: "simulator and kernel disagree on these flows",
    NOT_TESTED: "the given ruleset has no table for this family",
}


def answer_line(answer: Answer, *, again: bool) -> str:
    """Return the line that is printed when a node is done."""
    failure = answer.failure
    if failure is not None:
        reason = failure.reason.partition("\n")[0].removeprefix(f"{answer.path}: ")
        return f"{answer.path}: {'will be retried' if again else 'not assessed'}: {reason}"
    result = ", ".join(answer.ids) if answer.differences else "nothing changes"
    return f"{answer.path}: {result}; {answer.flows} flows"


def print_fleet(fleet: Fleet, stream: TextIO) -> None:
    """Print the findings of all nodes, grouped by identical findings."""
    for line in _lines(fleet):
        print(line, file=stream)


def _lines(fleet: Fleet) -> Iterator[str]:
    short = _short(fleet)
    shared: frozenset[NodeDifference] = frozenset()
    if fleet.shared is not None:
        shared = frozenset(fleet.shared.differences)
        yield f"all {len(fleet.shared.answers)} nodes with findings"
        yield from _findings(fleet.shared)
        yield ""
    for group in fleet.alike:
        yield f"{_nodes(len(group.answers))}: {_named([short[path] for path in group.paths])}"
        if group.failure is not None:
            yield from _field("not assessed", group.failure.reason)
        elif not group.differences:
            yield from _field("", "nothing changes")
        yield from _findings(group, shared)
        if group.differences:
            # On one line of any length, so that it can be copied.
            words = shlex.join(["nfparity", "assess", group.paths[0], *fleet.options])
            yield f"  {'reproduce':<12} {words}"
        yield ""
    if fleet.spread:
        yield "by difference"
    for spread in fleet.spread:
        title = difference_title(spread)
        of = counted(spread.subjects, "subject")
        yield from _field(spread.id, f"{_nodes(spread.nodes)}, {of}: {title}")
    yield from _plan(fleet, short)
    failed = f", {fleet.failed} not assessed" if fleet.failed else ""
    known = [difference.id for difference in fleet.spread if difference.id not in _OWN]
    unexplained = sum(difference.nodes for difference in fleet.spread if difference.id == UNEXPLAINED)
    differences = counted(len(known), "known difference")
    yield (
        f"{_nodes(fleet.nodes)} in {counted(len(fleet.alike), 'group')}{failed}: {differences}, "
        f"{unexplained} with unexplained ones; {counted(fleet.flows, 'flow')}"
    )


def _plan(fleet: Fleet, short: dict[str, str]) -> Iterator[str]:
    """Yield the groups of nodes in the order in which they can change the mode, and the changes they need."""
    yield "rollout, in this order"
    for number, step in enumerate(rollout(fleet), 1):
        names = _named([short[path] for path in step.snapshots])
        yield f"{number}. {_nodes(len(step.snapshots))}: {step.readiness}: {names}"
        for ids, advice in step.actions:
            yield from _field(ids, advice)
        if step.readiness is not Readiness.NOW:
            yield f"  {'check':<12} {step.command}"
    yield ""


def difference_title(spread: Spread) -> str:
    """Return the title of a difference: that of the catalogue, or another one if the catalogue lacks it."""
    return spread.title or _OWN.get(spread.id, "")


def _findings(group: Alike, shared: frozenset[NodeDifference] = frozenset()) -> Iterator[str]:
    """Yield the findings of a group, except those that all groups share."""
    own = Alike(answers=group.answers, differences=tuple(f for f in group.differences if f not in shared))
    for k, subjects in own.subjects().items():
        yield from _field(k, f"{_some(subjects)}{_use(group, k)}")
    if group.differences and not own.differences:
        yield from _field("", "no other findings")


def _short(fleet: Fleet) -> dict[str, str]:
    paths = sorted(path for group in fleet.alike for path in group.paths)
    return dict(zip(paths, labels(paths), strict=True))


def _nodes(count: int) -> str:
    return counted(count, "node")


def _named(names: Sequence[str]) -> str:
    more = f", … and {len(names) - _NODES} more" if len(names) > _NODES else ""
    return ", ".join(names[:_NODES]) + more


def _some(subjects: Sequence[str]) -> str:
    more = f" and {len(subjects) - _SUBJECTS} more" if len(subjects) > _SUBJECTS else ""
    return "; ".join(subjects[:_SUBJECTS]) + more


def _use(group: Alike, k: str) -> str:
    used = group.traffic_seen(k)
    return "" if used is None else f" (traffic seen on {used} of {len(group.answers)})"


def _field(name: str, text: str) -> Iterator[str]:
    lead = f"  {name:<12} "
    wrapped = textwrap.wrap(text, _WIDTH - len(lead), break_long_words=False, break_on_hyphens=False)
    for index, part in enumerate(wrapped or [""]):
        yield (lead if index == 0 else " " * len(lead)) + part


def fleet_json(fleet: Fleet) -> str:
    """Return the summary as JSON, with every node and every subject."""
    data = {
        "nodes": fleet.nodes,
        "failed": fleet.failed,
        "changes": fleet.changes,
        "flows": fleet.flows,
        "groups": [_alike(group) for group in fleet.alike],
        "rollout": [
            {
                "readiness": step.readiness.value,
                "snapshots": list(step.snapshots),
                "actions": [{"differences": ids, "action": advice} for ids, advice in step.actions],
                "check": step.command,
            }
            for step in rollout(fleet)
        ],
        "differences": [
            {
                "id": difference.id,
                "title": difference_title(difference),
                "nodes": difference.nodes,
                "subjects": difference.subjects,
            }
            for difference in fleet.spread
        ],
    }
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _alike(group: Alike) -> dict[str, object]:
    failure = group.failure
    return {
        "snapshots": list(group.paths),
        "failure": None if failure is None else {"status": failure.status, "reason": failure.reason},
        "findings": [{"id": f.id, "family": f.family.value, "affects": f.subject} for f in group.differences],
        "traffic seen": {k: group.traffic_seen(k) for k in group.subjects()},
    }
