"""The parity report for programs: one JSON object."""

from __future__ import annotations

import json
from dataclasses import asdict

from harness.parity import ParityReport

__all__ = ["parity_json"]


def parity_json(report: ParityReport) -> str:
    """Return the report as JSON: a stable set of keys, differences in full."""
    data = {"parity": report.parity, **asdict(report)}
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
