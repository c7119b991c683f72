"""The plan of a rollout: the groups of nodes that can switch now, and the changes that others need first."""

from __future__ import annotations

import shlex
from enum import StrEnum
from typing import Final

from nfparity.assess.catalogue import every_entry
from nfparity.assess.fleet.grouping import Alike, Fleet
from nfparity.assess.fleet.node import LEAK, NOT_JUDGED, NOT_TESTED, ORDER, UNEXPLAINED
from nfparity.assess.severity import Severity, gravest
from translate.dataclass import dataclass

__all__ = ["Readiness", "RolloutStep", "rollout"]


class Readiness(StrEnum):
    """The state of a group of nodes, in the order of the plan."""

    NOW = "can switch now"
    READ = "can switch after a look at the changes"
    FIRST = "must change something first"
    UNKNOWN = "must be assessed again first"


_REQUIRED: Final = frozenset({"K08", "K29", "K42", "K43", "K44"})
"""Facts of a snapshot without which kube-proxy's nftables mode does not work completely."""

_OWN: Final = {
    LEAK: "add a blackhole route for the service range (ip route add blackhole RANGE)",
    ORDER: "let only one component decide about these packets, or give its base chain another priority",
    UNEXPLAINED: "read the examples: no known difference explains them",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutStep:
    """A group of nodes with its readiness.

    ``actions`` are pairs of a difference and the advice about it, the same advice once. ``command`` assesses
    one node of the group again; its exit status is 1 while a packet loses its receiver.
    """

    readiness: Readiness
    snapshots: tuple[str, ...]
    actions: tuple[tuple[str, str], ...]
    command: str


def rollout(fleet: Fleet) -> tuple[RolloutStep, ...]:
    """Return the steps: nodes that can switch first, and those with the fewest changes before others."""
    steps = [_step(group, fleet.options) for group in fleet.alike]
    order = tuple(Readiness)
    return tuple(
        sorted(steps, key=lambda step: (order.index(step.readiness), len(step.actions), step.snapshots))
    )


def _step(group: Alike, options: tuple[str, ...]) -> RolloutStep:
    severities = _severities(group)
    ids = set(severities)
    broken = {k for k in ids if severities[k] is Severity.BREAKS or k in _REQUIRED}
    changed = {k for k in ids - broken if severities[k] in (Severity.CHANGES, Severity.SNAPSHOT)}
    if group.failure is not None or ids & {NOT_JUDGED, NOT_TESTED}:
        readiness, shown = Readiness.UNKNOWN, broken
    elif broken:
        readiness, shown = Readiness.FIRST, broken
    elif changed:
        readiness, shown = Readiness.READ, changed
    else:
        readiness, shown = Readiness.NOW, set()
    words = ["nfparity", "assess", group.paths[0], *options, "--fail-on", "breaks"]
    return RolloutStep(
        readiness=readiness, snapshots=group.paths, actions=_actions(shown), command=shlex.join(words)
    )


def _severities(group: Alike) -> dict[str, Severity]:
    """Return the gravest severity of each difference on any node of a group."""
    by_id: dict[str, list[Severity]] = {}
    for answer in group.answers:
        for difference in answer.differences:
            by_id.setdefault(difference.id, []).append(difference.severity)
    return {k: gravest(severities) for k, severities in by_id.items()}


def _actions(ids: set[str]) -> tuple[tuple[str, str], ...]:
    """Return the advice about some differences, without differences that need no action."""
    advice = {entry.id: entry.action for entry in every_entry()} | _OWN
    names: dict[str, list[str]] = {}
    for k in sorted(ids & advice.keys()):
        if not advice[k].startswith("none"):
            names.setdefault(advice[k], []).append(k)
    return tuple((", ".join(known), text) for text, known in names.items())
