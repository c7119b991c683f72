"""The assessment for programs: one JSON object."""

from __future__ import annotations

import json

from harness.corpus.jsonlines import flow_to_json
from harness.corpus.outcomes import outcome_to_json
from nfparity.assess.assessing import Assessment, Finding
from nfparity.assess.leaks import Leak
from nfparity.assess.seen import Evidence, Seen
from nfparity.assess.summary import Summary
from translate.ir import Family

__all__ = ["assessment_json"]


def assessment_json(summary: Summary) -> str:
    """Return the assessment as JSON: a stable set of keys, everything that was seen in full."""
    data = {
        "snapshot": summary.snapshot,
        "kubernetes": None if summary.version is None else summary.kubernetes,
        "against": summary.against,
        "changes": summary.changes,
        "not tested": [str(one) for one in summary.untested],
        "families": [_family(summary, one) for one in summary.assessments],
    }
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _family(summary: Summary, one: Assessment) -> dict[str, object]:
    family = one.facts.family
    return {
        "family": family.value,
        "flows": one.flows,
        "assumed": list(one.facts.assumed),
        "findings": [_finding(summary, f, family) for f in one.findings],
        "unexplained": [_finding(summary, f, family) for f in one.unexplained],
        "leaks": [_leak(summary, leak, family) for leak in one.leaks],
        "checked": [{"id": c.entry.id, "witnesses": c.witnesses} for c in one.checked],
        "disputed": [str(each) for each in one.disputed],
    }


def _finding(summary: Summary, finding: Finding, family: Family) -> dict[str, object]:
    entry = finding.entry
    known: dict[str, object] = {}
    if entry is not None:
        known = {
            "id": entry.id,
            "title": entry.title,
            "today": entry.today,
            "then": entry.then,
            "advice": entry.advice,
            "source": entry.source,
        }
    return {
        **known,
        "subject": finding.subject,
        "told": finding.told,
        "lines": [_line(line) for line in finding.lines],
        "packets": finding.in_use,
        "witnesses": [_seen(summary, seen, family) for seen in finding.seen],
    }


def _line(line: Evidence) -> dict[str, object]:
    return {
        "file": line.origin.file,
        "line": line.origin.line,
        "text": line.origin.text,
        "packets": line.packets,
    }


def _seen(summary: Summary, seen: Seen, family: Family) -> dict[str, object]:
    return {
        "flow": flow_to_json(seen.flow),
        "step": seen.step,
        "fields": list(seen.fields),
        "today": outcome_to_json(seen.today, family),
        "then": outcome_to_json(seen.then, family),
        "told": seen.told or seen.instead,
        "command": summary.command(seen),
    }


def _leak(summary: Summary, leak: Leak, family: Family) -> dict[str, object]:
    return {
        "kind": leak.kind,
        "device": leak.device,
        "remains": leak.remains,
        "witnesses": [_seen(summary, seen, family) for seen in leak.seen],
    }
