"""The assessment as JUnit XML: a test case per flow and backend, and one per static finding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.report.junit import Suite, TestCase, junit_text
from nfparity.assess.assessing import Assessment, Finding
from nfparity.assess.difference import ChangedPacket
from nfparity.assess.replay.backends import LEGACY
from nfparity.assess.summary import Summary
from nfparity.report.orders import order_outcomes
from nfparity.report.outcometext import after_text, outcome_text

__all__ = ["assessment_junit"]

_STATED: Final = "snapshot"


def assessment_junit(summary: Summary, *, times: bool) -> str:
    """Return the assessment as JUnit XML; without ``times``, the same input gives the same text.

    A flow fails in nftables mode if its outcome changes, and in iptables mode if simulator and kernel
    disagree. A family that was not tested is an error.
    """
    suites = [suite for assessment in summary.assessments for suite in _suites(summary, assessment)]
    for untested in summary.untested:
        name = f"{untested.family.value}: every flow"
        cases = (TestCase(name=name, error=untested.reason),)
        suites.append(Suite(f"{untested.family.value} not tested", f"assess.{untested.family.value}", cases))
    return junit_text(suites, times=times)


def _suites(summary: Summary, assessment: Assessment) -> Iterator[Suite]:
    family = assessment.facts.family.value
    disputed = {each.flow_id: each.description for each in assessment.disputed}
    changes = dict(_changes(summary, assessment))
    for number, (name, flows) in enumerate(assessment.sides):
        cases = tuple(
            TestCase(
                name=flow_id,
                seconds=seconds,
                failure=disputed.get(flow_id) if name == LEGACY else changes.get(flow_id, (None, ""))[0],
                detail="" if name == LEGACY else changes.get(flow_id, (None, ""))[1],
            )
            for flow_id, seconds in flows.items()
        )
        again = " again" if number > 1 else ""
        yield Suite(f"{family} {name}{again}", f"assess.{family}.{name}", cases)
    static_findings = tuple(
        TestCase(name=f"{_kind(finding)} {finding.subject}", failure=finding.description)
        for finding in assessment.findings
        if not finding.examples
    )
    if static_findings:
        yield Suite(f"{family} {_STATED}", f"assess.{family}.{_STATED}", static_findings)


def _changes(summary: Summary, assessment: Assessment) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield for each flow with a finding its id, a one-line summary and the details."""
    by_flow: dict[str, list[tuple[str, str]]] = {}
    for finding in (*assessment.findings, *assessment.unexplained):
        for changed in finding.examples:
            line = f"{_kind(finding)}: {finding.subject}"
            by_flow.setdefault(changed.flow.id, []).append((line, _detail(summary, assessment, changed)))
    for leak in assessment.leaks:
        for changed in leak.examples:
            line = f"LEAK: {leak.kind} leaves by {leak.device}"
            by_flow.setdefault(changed.flow.id, []).append((line, _detail(summary, assessment, changed)))
    for order in assessment.orders:
        for changed in order.examples:
            first, second = order_outcomes(changed, assessment.facts.family)
            detail = f"{changed.packet}\nkube-proxy's chains first: {first}\nthe others first: {second}"
            by_flow.setdefault(changed.flow.id, []).append((f"ORDER: {order.subject}", detail))
    for flow_id, changes in by_flow.items():
        lines = dict.fromkeys(line for line, _ in changes)
        yield flow_id, ("; ".join(lines), "\n\n".join(dict.fromkeys(detail for _, detail in changes)))


def _kind(finding: Finding) -> str:
    return "UNEXPLAINED" if finding.entry is None else finding.entry.id


def _detail(summary: Summary, assessment: Assessment, changed: ChangedPacket) -> str:
    family = assessment.facts.family
    outcomes = (
        (f"changed: {changed.description}",)
        if changed.description
        else (f"before: {outcome_text(changed.before, family)}", f"after: {after_text(changed, family)}")
    )
    return "\n".join((str(changed.packet), *outcomes, f"reproduce: {summary.command(changed)}"))
