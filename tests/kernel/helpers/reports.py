"""The text of a report in a failing test, in full where pytest would shorten a tuple."""

from __future__ import annotations

from io import StringIO

from harness.diff.result import ParityReport
from harness.report.text import print_parity

__all__ = ["report_text"]


def report_text(report: ParityReport) -> str:
    """Return the report as it is printed."""
    text = StringIO()
    print_parity(report, text)
    return text.getvalue()
