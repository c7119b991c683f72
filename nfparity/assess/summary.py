"""The findings for all families of a snapshot, and the command that reproduces each example."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from nfparity.assess.assessing import Assessment, Finding
from nfparity.assess.catalogue import Entry, Version
from nfparity.assess.difference import ChangedPacket
from nfparity.kubeproxy.state import Mode
from translate.dataclass import dataclass
from translate.ir import Family

__all__ = ["Group", "Summary", "Untested"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The findings of one difference in one family, by subject."""

    entry: Entry
    findings: tuple[Finding, ...]

    @property
    def example(self) -> ChangedPacket | None:
        """The packet that shows it best: from a detector's flow, otherwise from the corpus."""
        changed = [packet for finding in self.findings for packet in finding.examples]
        return next(
            (p for p in changed if p.flow.id.startswith(self.entry.id)), changed[0] if changed else None
        )


@dataclass(frozen=True, slots=True)
class Untested:
    """A family that kube-proxy serves but that was not assessed, with the reason."""

    family: Family
    reason: str

    def __str__(self) -> str:
        return f"IPv{self.family.version}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The result of ``nfparity assess``. ``words`` are the command-line words needed to reproduce it.

    ``against`` names the given nftables ruleset; None: the ruleset of kube-proxy ``version`` was generated.
    """

    snapshot: str
    version: Version | None
    against: str | None
    assessments: tuple[Assessment, ...]
    words: tuple[str, ...] = ()
    untested: tuple[Untested, ...] = ()
    accepted: int = 0
    """The number of findings that were left out, because the user has accepted them."""

    @property
    def changes(self) -> bool:
        """True if there is any finding."""
        return any(assessment.changes for assessment in self.assessments)

    @property
    def from_ipvs(self) -> bool:
        """True if kube-proxy is in ipvs mode before the change."""
        return any(assessment.facts.state.mode is Mode.IPVS for assessment in self.assessments)

    @property
    def kubernetes(self) -> str:
        """The version as text."""
        return "not given" if self.version is None else ".".join(map(str, self.version))

    def groups(self, assessment: Assessment) -> Iterator[Group]:
        """Yield the findings of each difference, in the order of the catalogue."""
        by_id: dict[str, list[Finding]] = {}
        for finding in assessment.findings:
            if finding.entry is not None:
                by_id.setdefault(finding.entry.id, []).append(finding)
        for k in sorted(by_id):
            entry = by_id[k][0].entry
            assert entry is not None
            yield Group(entry=entry, findings=tuple(by_id[k]))

    def command(self, changed: ChangedPacket | None) -> str:
        """Return the command that reproduces one example; for None, the command without the final id."""
        words = ["nfparity", "assess", self.snapshot, *self.words, "--only"]
        return shlex.join(words if changed is None else [*words, changed.flow.id])
