"""All that was found of a snapshot, of every family, and how to find it again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from nfparity.assess.assessing import Assessment, Finding
from nfparity.assess.catalogue import Entry, Version
from nfparity.assess.seen import Seen
from translate.ir import Family

__all__ = ["Group", "Summary", "Untested"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Everything that was found of one difference in one family, by subject."""

    entry: Entry
    findings: tuple[Finding, ...]

    @property
    def witness(self) -> Seen | None:
        """The packet that shows it best: a witness's, else one of the corpus."""
        seen = [one for finding in self.findings for one in finding.seen]
        return next((one for one in seen if one.flow.id.startswith(self.entry.id)), seen[0] if seen else None)


@dataclass(frozen=True, slots=True)
class Untested:
    """A family that kube-proxy serves and that was not assessed, and why."""

    family: Family
    reason: str

    def __str__(self) -> str:
        return f"IPv{self.family.version}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What ``nfparity assess`` has to say. ``options`` are words of the command line that a repetition needs.

    ``against`` names the nftables ruleset that was given; None: it was made as kube-proxy of ``version``
    would make it.
    """

    snapshot: str
    version: Version | None
    against: str | None
    assessments: tuple[Assessment, ...]
    options: tuple[str, ...] = ()
    untested: tuple[Untested, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether anything will change, or is wrong already."""
        return any(one.changes for one in self.assessments)

    @property
    def kubernetes(self) -> str:
        """The version in words."""
        return "not said" if self.version is None else ".".join(map(str, self.version))

    def groups(self, assessment: Assessment) -> Iterator[Group]:
        """Yield what was found of each difference, in the order of the catalogue."""
        found: dict[str, list[Finding]] = {}
        for finding in assessment.findings:
            if finding.entry is not None:
                found.setdefault(finding.entry.id, []).append(finding)
        for k in sorted(found):
            one = found[k][0].entry
            assert one is not None
            yield Group(entry=one, findings=tuple(found[k]))

    def command(self, seen: Seen | None) -> str:
        """Return the command that repeats one witness; None: any, whose id is to stand behind it."""
        words = ["nfparity", "assess", self.snapshot, *self.options, "--only"]
        return shlex.join(words if seen is None else [*words, seen.flow.id])
