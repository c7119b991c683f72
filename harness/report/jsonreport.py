"""The parity report as one JSON object."""

from __future__ import annotations

import json

from harness.diff.result import ParityReport
from translate.dataclass import asdict, replace

__all__ = ["parity_json"]


def parity_json(report: ParityReport) -> str:
    """Return the report as JSON: a stable set of keys, differences in full, no times."""
    backends = tuple(replace(backend, cases=()) for backend in report.backends)
    plain = asdict(replace(report, backends=backends))
    for backend in plain["backends"]:
        del backend["cases"]
    for difference in plain["differences"]:
        del difference["origins"], difference["rules_path"]  # they are in "rules" and "command"
        del difference["branch"]
    data = {"result": report.result, "parity": report.parity, **plain}
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
