"""The assessment as one JSON object."""

from __future__ import annotations

import json

from harness.corpus.formats.jsonlines import flow_to_json
from harness.corpus.formats.outcomes import outcome_to_json
from nfparity.assess.assessing import Assessment, Finding
from nfparity.assess.difference import ChangedPacket, Evidence
from nfparity.assess.leaks import Leak
from nfparity.assess.replay.orders import OrderDifference
from nfparity.assess.summary import Summary
from nfparity.report.orders import ways_text
from translate.ir import Family

__all__ = ["assessment_json"]


def assessment_json(summary: Summary) -> str:
    """Return the assessment as JSON, with every example in full."""
    data = {
        "snapshot": summary.snapshot,
        "kubernetes": None if summary.version is None else summary.kubernetes,
        "against": summary.against,
        "changes": summary.changes,
        "not tested": [str(untested) for untested in summary.untested],
        "families": [_family(summary, assessment) for assessment in summary.assessments],
    }
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _family(summary: Summary, assessment: Assessment) -> dict[str, object]:
    family = assessment.facts.family
    return {
        "family": family.value,
        "flows": assessment.flows,
        "assumed": list(assessment.facts.assumed),
        "findings": [_finding(summary, f, family) for f in assessment.findings],
        "unexplained": [_finding(summary, f, family) for f in assessment.unexplained],
        "leaks": [_leak(summary, leak, family) for leak in assessment.leaks],
        "orders": [_order(summary, each, family) for each in assessment.orders],
        "checked": [{"id": c.entry.id, "flows": c.flows} for c in assessment.checked],
        "disputed": [str(each) for each in assessment.disputed],
    }


def _finding(summary: Summary, finding: Finding, family: Family) -> dict[str, object]:
    entry = finding.entry
    known: dict[str, object] = {}
    if entry is not None:
        known = {
            "id": entry.id,
            "title": entry.title,
            "before": entry.before,
            "after": entry.after,
            "action": entry.action,
            "source": entry.source,
        }
    return {
        **known,
        "affects": finding.subject,
        "detail": finding.description,
        "lines": [_line(line) for line in finding.lines],
        "traffic seen": finding.traffic_seen,
        "examples": [_changed(summary, changed, family) for changed in finding.examples],
    }


def _line(line: Evidence) -> dict[str, object]:
    return {
        "file": line.origin.file,
        "line": line.origin.line,
        "text": line.origin.text,
        "packets": line.packets,
    }


def _changed(summary: Summary, changed: ChangedPacket, family: Family) -> dict[str, object]:
    return {
        "flow": flow_to_json(changed.flow),
        "step": changed.step,
        "fields": list(changed.fields),
        "before": outcome_to_json(changed.before, family),
        "after": outcome_to_json(changed.after, family),
        "detail": changed.description or changed.instead,
        "reproduce": summary.command(changed),
    }


def _leak(summary: Summary, leak: Leak, family: Family) -> dict[str, object]:
    return {
        "kind": leak.kind,
        "device": leak.device,
        "remains": leak.remains,
        "examples": [_changed(summary, changed, family) for changed in leak.examples],
    }


def _order(summary: Summary, difference: OrderDifference, family: Family) -> dict[str, object]:
    kube_proxy_first, others_first = ways_text(difference)
    return {
        "affects": difference.subject,
        "decides": difference.binding.value,
        "registered later": list(difference.order.later),
        "places": list(difference.order.places),
        "kube-proxy's chains run first if": kube_proxy_first,
        "the others run first if": others_first,
        "lines": [_line(line) for line in difference.lines],
        "examples": [
            {
                "flow": flow_to_json(changed.flow),
                "step": changed.step,
                "fields": list(changed.fields),
                "kube-proxy first": outcome_to_json(changed.before, family),
                "others first": outcome_to_json(changed.after, family),
                "detail": changed.instead,
                "reproduce": summary.command(changed),
            }
            for changed in difference.examples
        ],
    }
