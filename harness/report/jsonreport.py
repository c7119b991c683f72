"""The parity report as one JSON object."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from harness.diff.result import ParityReport

__all__ = ["parity_json"]


def parity_json(report: ParityReport) -> str:
    """Return the report as JSON: a stable set of keys, differences in full, no times."""
    backends = tuple(replace(one, cases=()) for one in report.backends)
    plain = asdict(replace(report, backends=backends))
    for one in plain["backends"]:
        del one["cases"]
    for one in plain["differences"]:
        del one["origins"], one["rules_path"]  # they are in "rules" and "command"
    data = {"result": report.result, "parity": report.parity, **plain}
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
