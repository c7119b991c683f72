"""Severities of findings of ``assess`` as a page shows them."""

from __future__ import annotations

from typing import Final

from nfparity.assess.severity import Severity
from nfparity.report.pages.content import Level, Section

__all__ = ["LEVELS", "rank"]

LEVELS: Final = {
    Severity.BREAKS: Level("breaks", "Breaks", "a packet that has a receiver before the change loses it"),
    Severity.CHANGES: Level("changes", "Changes", "a packet is treated differently, and no receiver is lost"),
    Severity.SNAPSHOT: Level("snapshot", "Check", "a fact of the snapshot shows it, without a packet"),
    Severity.BEFORE: Level("before", "Existed before", "a problem of the present rules"),
    Severity.NOT_JUDGED: Level("doubt", "Not judged", "simulator and kernel disagree before the change"),
}
_RANKS: Final = {level: number for number, level in enumerate(LEVELS.values())}


def rank(of: Level | Section) -> int:
    """Return the place of a severity in their order, or that of a section's gravest finding."""
    if isinstance(of, Level):
        return _RANKS[of]
    return min(_RANKS[finding.level] for finding in of.findings)
