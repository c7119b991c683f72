"""The assessment as SARIF: results on the lines of the dump, rules from the catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.report.sarif import sarif_locations, sarif_log
from nfparity.assess.assessing import Finding
from nfparity.assess.catalogue import Decided, catalogue, ipvs_catalogue
from nfparity.assess.difference import ChangedPacket
from nfparity.assess.leaks import Leak
from nfparity.assess.replay.orders import OrderDifference
from nfparity.assess.summary import Summary
from nfparity.report.orders import TITLE, order_outcomes
from nfparity.report.outcometext import after_text, outcome_text
from translate.ir import Family

__all__ = ["assessment_sarif"]

_LEAK: Final = "LEAK"
_UNEXPLAINED: Final = "UNEXPLAINED"
_NOT_JUDGED: Final = "NOT-JUDGED"
_ORDER: Final = "ORDER"
_OWN: Final = {
    _ORDER: TITLE,
    _LEAK: "traffic to a service address leaves by the default route",
    _UNEXPLAINED: "a difference that is not in the catalogue",
    _NOT_JUDGED: "a flow whose outcome before the change differs between simulator and kernel",
}


def assessment_sarif(summary: Summary, *, version: str) -> str:
    """Return the assessment as a SARIF log of one run; ``version`` is the version of nfparity."""
    untested = [str(family) for family in summary.untested]
    return sarif_log(list(_rules(summary)), _results(summary), version=version, untested=untested)


def _rules(summary: Summary) -> Iterator[dict[str, object]]:
    for entry in ipvs_catalogue() if summary.from_ipvs else catalogue():
        if entry.decided is Decided.OUT_OF_REACH:
            continue
        yield {
            "id": entry.id,
            "shortDescription": {"text": entry.title},
            "fullDescription": {"text": f"{entry.trigger}. Before: {entry.before}. After: {entry.after}."},
            "help": {"text": f"{entry.action}. Source: {entry.source}"},
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
        for order in assessment.orders:
            yield _order(summary, order, family)
        for disputed in assessment.disputed:
            yield {
                "ruleId": _NOT_JUDGED,
                "level": "error",
                "message": {"text": str(disputed)},
                "locations": sarif_locations((), _files(summary)),
                "partialFingerprints": {"flow": disputed.flow_id},
            }


def _result(summary: Summary, finding: Finding, family: Family) -> dict[str, object]:
    entry = finding.entry
    text = finding.description or (entry.after if entry is not None else finding.subject)
    changed = finding.examples[0] if finding.examples else None
    return {
        "ruleId": _UNEXPLAINED if entry is None else entry.id,
        "level": "error" if entry is None else "warning",
        "message": {"text": f"{finding.subject}: {text}{_shown(summary, changed, family)}"},
        "locations": sarif_locations((line.origin for line in finding.lines), _files(summary)),
        "partialFingerprints": {"subject": finding.subject},
    }


def _leak(summary: Summary, leak: Leak, family: Family) -> dict[str, object]:
    text = f"{leak.kind} leaves by {leak.device}{_shown(summary, leak.examples[0], family)}"
    return {
        "ruleId": _LEAK,
        "level": "error",
        "message": {"text": text},
        "locations": sarif_locations((), _files(summary)),
        "partialFingerprints": {"subject": leak.kind},
    }


def _order(summary: Summary, difference: OrderDifference, family: Family) -> dict[str, object]:
    changed = difference.examples[0]
    first, second = order_outcomes(changed, family)
    text = (
        f"{difference.subject}. Example: {changed.packet}: kube-proxy's chains first: {first}; the others"
        f" first: {second}. Reproduce: {summary.command(changed)}"
    )
    return {
        "ruleId": _ORDER,
        "level": "error",
        "message": {"text": text},
        "locations": sarif_locations((line.origin for line in difference.lines), _files(summary)),
        "partialFingerprints": {"subject": difference.subject},
    }


def _shown(summary: Summary, changed: ChangedPacket | None, family: Family) -> str:
    if changed is None:
        return ""
    outcomes = f"before: {outcome_text(changed.before, family)}; after: {after_text(changed, family)}"
    result = changed.description or outcomes
    return f". Example: {changed.packet}: {result}. Reproduce: {summary.command(changed)}"


def _files(summary: Summary) -> Iterator[str]:
    """Yield the locations of findings without a line."""
    return (assessment.facts.ruleset.source for assessment in summary.assessments)
