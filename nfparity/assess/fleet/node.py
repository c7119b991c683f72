"""Summary of one node in a fleet: the differences and their subjects, or the reason of a failure.

A full assessment with every packet takes some hundred kilobytes. For a thousand nodes only this summary is
kept, a few kilobytes each; assess one of the nodes by itself to see the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

from nfparity.assess.assessing import Assessment
from nfparity.assess.difference import ChangedPacket
from nfparity.assess.severity import Severity, gravest, order_severity, severity_of
from nfparity.assess.summary import Summary
from translate.dataclass import dataclass, field
from translate.ir import Family

__all__ = [
    "LEAK",
    "NOT_JUDGED",
    "NOT_TESTED",
    "ORDER",
    "UNEXPLAINED",
    "Answer",
    "Failure",
    "NodeDifference",
    "answer_of",
]

LEAK = "LEAK"
ORDER = "ORDER"
UNEXPLAINED = "UNEXPLAINED"
NOT_JUDGED = "NOT JUDGED"
NOT_TESTED = "NOT TESTED"


@dataclass(frozen=True, slots=True, order=True)
class NodeDifference:
    """One difference for one subject in one family.

    ``id`` is that of the catalogue's entry, or one of this module's constants. ``packets`` is the count of
    the node's own rules, None if unknown. It and ``severity`` are not compared, because they differ between
    nodes with the same differences.
    """

    id: str
    family: Family
    subject: str
    packets: int | None = field(default=None, compare=False)
    severity: Severity = field(default=Severity.CHANGES, compare=False)


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a snapshot was not assessed.

    ``status`` is the exit status for this snapshot alone: 2 for bad input, 3 if the machine lacks
    something, 1 for a fault of this program. ``again``: another try may succeed.
    """

    status: int
    reason: str
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The summary of one snapshot. ``differences`` is sorted; it is empty when ``failure`` is not None."""

    path: str
    differences: tuple[NodeDifference, ...] = ()
    titles: tuple[tuple[str, str], ...] = ()
    flows: int = 0
    failure: Failure | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """The differences, each once."""
        return tuple(dict.fromkeys(difference.id for difference in self.differences))

    @property
    def status(self) -> int:
        """The exit status for this snapshot alone."""
        if self.failure is not None:
            return self.failure.status
        if any(difference.id != NOT_TESTED for difference in self.differences):
            return 1
        return 4 if self.differences else 0


def answer_of(summary: Summary, path: str) -> Answer:
    """Return the summary of an assessment."""
    differences = [d for assessment in summary.assessments for d in _differences(assessment)]
    differences += (NodeDifference(NOT_TESTED, left.family, left.reason) for left in summary.untested)
    titles = {f.entry.id: f.entry.title for a in summary.assessments for f in a.findings if f.entry}
    return Answer(
        path=path,
        differences=tuple(sorted(differences)),
        titles=tuple(sorted(titles.items())),
        flows=sum(assessment.flows for assessment in summary.assessments),
    )


def _differences(assessment: Assessment) -> Iterator[NodeDifference]:
    family = assessment.facts.family
    for finding in assessment.findings:
        assert finding.entry is not None
        severity = severity_of(finding, assessment.facts)
        yield NodeDifference(finding.entry.id, family, finding.subject, finding.traffic_seen, severity)
    for leak in assessment.leaks:
        after = "after, too" if leak.remains else "not after"
        yield NodeDifference(LEAK, family, f"{leak.kind} ({after})", severity=Severity.BEFORE)
    for order in assessment.orders:
        yield NodeDifference(ORDER, family, order.subject, severity=order_severity(order))
    # Ids of flows contain the node's addresses. Fates are the same on every node.
    ends: dict[str, list[Severity]] = {}
    for finding in assessment.unexplained:
        for changed in finding.examples:
            ends.setdefault(_fates(changed), []).append(severity_of(finding, assessment.facts))
    for text, severities in ends.items():
        subject = f"{text} ({len(severities)})"
        yield NodeDifference(UNEXPLAINED, family, subject, severity=gravest(severities))
    if assessment.disputed:
        text = f"flows on which simulator and kernel disagree ({len(assessment.disputed)})"
        yield NodeDifference(NOT_JUDGED, family, text, severity=Severity.NOT_JUDGED)


def _fates(changed: ChangedPacket) -> str:
    fields = ", ".join(changed.fields)
    return f"{changed.fate_before} before, {changed.fate_after} after; differs in {fields}"
