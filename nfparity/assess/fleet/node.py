"""What is kept of one node: who of its services meets which difference, or why that is not known.

An assessment holds every packet and the rules that it met, some hundred kilobytes; of a thousand nodes only
this is kept, a few. The rest is had again by assessing one of the nodes by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from nfparity.assess.assessing import Assessment
from nfparity.assess.seen import Seen
from nfparity.assess.summary import Summary
from translate.ir import Family

__all__ = ["LEAK", "NOT_JUDGED", "NOT_TESTED", "UNEXPLAINED", "Answer", "Failure", "Found", "answer_of"]

LEAK = "LEAK"
UNEXPLAINED = "UNEXPLAINED"
NOT_JUDGED = "NOT JUDGED"
NOT_TESTED = "NOT TESTED"


@dataclass(frozen=True, slots=True, order=True)
class Found:
    """One difference for one subject in one family.

    ``id`` is that of the catalogue's entry, or one of this module's words. ``packets`` are what the node's
    own rules have counted, None when not known; it is no part of what is found, as no two nodes have the
    same.
    """

    id: str
    family: Family
    subject: str
    packets: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a snapshot was not assessed.

    ``status`` is the exit status that it would have had alone: 2 for bad input, 3 for what the machine
    lacks, 1 for a fault of this program. ``again``: another try may fare better.
    """

    status: int
    reason: str
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of one snapshot. ``found`` is sorted; it is empty when ``failure`` is not None."""

    path: str
    found: tuple[Found, ...] = ()
    titles: tuple[tuple[str, str], ...] = ()
    flows: int = 0
    failure: Failure | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """The differences, each once."""
        return tuple(dict.fromkeys(one.id for one in self.found))

    @property
    def status(self) -> int:
        """The exit status that it would have alone."""
        if self.failure is not None:
            return self.failure.status
        if any(one.id != NOT_TESTED for one in self.found):
            return 1
        return 4 if self.found else 0


def answer_of(summary: Summary, path: str) -> Answer:
    """Return what is kept of an assessment."""
    found = [one for assessment in summary.assessments for one in _found(assessment)]
    found += (Found(NOT_TESTED, one.family, one.reason) for one in summary.untested)
    titles = {f.entry.id: f.entry.title for a in summary.assessments for f in a.findings if f.entry}
    return Answer(
        path=path,
        found=tuple(sorted(found)),
        titles=tuple(sorted(titles.items())),
        flows=sum(one.flows for one in summary.assessments),
    )


def _found(assessment: Assessment) -> Iterator[Found]:
    family = assessment.facts.family
    for finding in assessment.findings:
        assert finding.entry is not None
        yield Found(finding.entry.id, family, finding.subject, finding.in_use)
    for leak in assessment.leaks:
        after = "then, too" if leak.remains else "no longer then"
        yield Found(LEAK, family, f"{leak.kind} ({after})")
    # Ids of flows have the node's addresses in them. Where packets end is the same on every node.
    ends = Counter(_ends(seen) for finding in assessment.unexplained for seen in finding.seen)
    for text, count in ends.items():
        yield Found(UNEXPLAINED, family, f"{text} ({count})")
    if assessment.disputed:
        yield Found(
            NOT_JUDGED, family, f"flows of which simulator and kernel disagree ({len(assessment.disputed)})"
        )


def _ends(seen: Seen) -> str:
    fields = ", ".join(seen.fields)
    return f"{seen.today_end} today, {seen.then_end} then, by {fields}"
