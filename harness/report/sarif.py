"""The assessment as SARIF 2.1.0: results on the lines of the dump, rules from the catalogue.

For code scanning views and editors. Lines are those of the file that was read; of a snapshot in an
archive they are in the file of that name inside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from harness.assess.assessing import Finding
from harness.assess.catalogue import Decided, catalogue
from harness.assess.leaks import Leak
from harness.assess.seen import Evidence, Seen
from harness.assess.summary import Summary
from harness.report.outcometext import outcome_text
from translate.ir import Family

__all__ = ["assessment_sarif"]

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEAK: Final = "LEAK"
_UNEXPLAINED: Final = "UNEXPLAINED"
_OWN: Final = {
    _LEAK: "traffic to a service address leaves by the default route",
    _UNEXPLAINED: "a difference that is not in the catalogue",
}


def assessment_sarif(summary: Summary, *, version: str) -> str:
    """Return the assessment as a SARIF log of one run; ``version`` is this program's."""
    rules = list(_rules())
    order = {str(rule["id"]): index for index, rule in enumerate(rules)}
    driver = {"name": "nfparity", "semanticVersion": version, "rules": rules}
    results = [{**one, "ruleIndex": order[str(one["ruleId"])]} for one in _results(summary)]
    run = {"tool": {"driver": driver}, "columnKind": "utf16CodeUnits", "results": results}
    return (
        json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)
        + "\n"
    )


def _rules() -> Iterator[dict[str, object]]:
    for entry in catalogue():
        if entry.decided is Decided.OUT_OF_REACH:
            continue
        yield {
            "id": entry.id,
            "shortDescription": {"text": entry.title},
            "fullDescription": {"text": f"{entry.trigger}. Today: {entry.today}. Then: {entry.then}."},
            "help": {"text": f"{entry.advice}. Source: {entry.source}"},
            "defaultConfiguration": {"level": "warning"},
        }
    for name, text in _OWN.items():
        yield {"id": name, "shortDescription": {"text": text}, "defaultConfiguration": {"level": "error"}}


def _results(summary: Summary) -> Iterator[dict[str, object]]:
    for assessment in summary.assessments:
        family = assessment.facts.family
        for finding in (*assessment.findings, *assessment.unexplained):
            yield _result(summary, finding, family)
        for leak in assessment.leaks:
            yield _leak(summary, leak, family)


def _result(summary: Summary, finding: Finding, family: Family) -> dict[str, object]:
    entry = finding.entry
    text = finding.told or (entry.then if entry is not None else finding.subject)
    seen = finding.seen[0] if finding.seen else None
    return {
        "ruleId": _UNEXPLAINED if entry is None else entry.id,
        "level": "error" if entry is None else "warning",
        "message": {"text": f"{finding.subject}: {text}{_shown(summary, seen, family)}"},
        "locations": _locations(finding.lines, summary),
        "partialFingerprints": {"subject": finding.subject},
    }


def _leak(summary: Summary, leak: Leak, family: Family) -> dict[str, object]:
    text = f"{leak.kind} leaves by {leak.device}{_shown(summary, leak.seen[0], family)}"
    return {
        "ruleId": _LEAK,
        "level": "error",
        "message": {"text": text},
        "locations": _locations((), summary),
        "partialFingerprints": {"subject": leak.kind},
    }


def _shown(summary: Summary, seen: Seen | None, family: Family) -> str:
    if seen is None:
        return ""
    ends = f"today {outcome_text(seen.today, family)}; then {outcome_text(seen.then, family)}"
    return f". Witness: {seen.packet}: {seen.told or ends}. Again: {summary.command(seen)}"


def _locations(lines: tuple[Evidence, ...], summary: Summary) -> list[dict[str, object]]:
    """Where a result stands; what no line is about stands in the file as a whole."""
    if not lines:
        files = dict.fromkeys(a.facts.ruleset.source for a in summary.assessments)
        return [{"physicalLocation": {"artifactLocation": {"uri": _uri(file)}}} for file in files]
    return [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": _uri(line.origin.file)},
                "region": {"startLine": max(line.origin.line, 1), "snippet": {"text": line.origin.text}},
            }
        }
        for line in lines
    ]


def _uri(path: str) -> str:
    return quote(path, safe="/:@!$&'()*+,;=~-._")
