"""The assessment as text: grouped by difference, each with an example packet."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterable, Iterator
from typing import Final, TextIO

from harness.counted import counted
from harness.report.terminal import styled
from nfparity.assess.assessing import Finding
from nfparity.assess.difference import ChangedPacket
from nfparity.assess.leaks import Leak
from nfparity.assess.replay.orders import OrderDifference
from nfparity.assess.severity import Severity, severities
from nfparity.assess.summary import Group, Summary
from nfparity.report.orders import ACTION, TITLE, order_outcomes, ways_text
from nfparity.report.outcometext import after_text, outcome_text
from translate.ir import Family

__all__ = ["print_assessment", "traffic_text"]

_SUBJECTS = 6
_UNEXPLAINED = 20
_WIDTH = 110
_SEVERITIES: Final = {
    Severity.BREAKS: "breaks",
    Severity.CHANGES: "changes",
    Severity.SNAPSHOT: "to check",
    Severity.BEFORE: "as before",
    Severity.NOT_JUDGED: "not judged",
}
"""Labels of the severities: traffic is lost, traffic changes, and so on."""


def print_assessment(summary: Summary, stream: TextIO) -> None:
    """Print the assessment; colours only on a terminal."""
    for line in _lines(summary):
        _print(line, stream)


def _print(line: str, stream: TextIO) -> None:
    if stream.isatty() and line and not line.startswith(" "):
        styled(stream)(line, "bold")
    else:
        print(line, file=stream)


def _lines(summary: Summary) -> Iterator[str]:
    after = f"that kube-proxy {summary.kubernetes} would load"
    if summary.against is not None:
        after = summary.against
    before = "virtual services of ip_vs, and iptables rules" if summary.from_ipvs else "iptables rules"
    yield f"{summary.snapshot}: before: {before}; after: nftables rules {after}"
    for assumption in dict.fromkeys(
        a for assessment in summary.assessments for a in assessment.facts.assumed
    ):
        yield f"  assumed: {assumption}"
    yield from _severities(summary)
    yield ""
    for assessment in summary.assessments:
        family = assessment.facts.family
        where = f" (IPv{family.version})" if len(summary.assessments) > 1 else ""
        for group in summary.groups(assessment):
            yield from _group(group, family, where)
        for leak in assessment.leaks:
            yield from _leak(leak, family, where)
        for order in assessment.orders:
            yield from _order(order, family, where)
        for finding in assessment.unexplained[:_UNEXPLAINED]:
            yield from _unexplained(finding, family)
        hidden = len(assessment.unexplained) - _UNEXPLAINED
        if hidden > 0:
            yield f"and {hidden} more unexplained differences; --format json lists them all"
            yield ""
        for disputed in assessment.disputed[:_UNEXPLAINED]:
            expected = "prediction" if summary.from_ipvs else "simulator"
            yield f"not judged: {expected} and kernel disagree before the change: {disputed}"
    for untested in summary.untested:
        yield f"not tested: {untested}"
    yield from _verdict(summary)


def _severities(summary: Summary) -> Iterator[str]:
    """Yield a line for each severity, with its findings."""
    names: dict[Severity, dict[str, None]] = {}
    for assessment in summary.assessments:
        for severity, name in severities(assessment):
            names.setdefault(severity, {}).setdefault(name)
    for severity in Severity:
        if severity in names:
            yield from _field(_SEVERITIES[severity], ", ".join(names[severity]))
    if summary.accepted:
        findings = "1 finding" if summary.accepted == 1 else f"{summary.accepted} findings"
        yield from _field("accepted", f"{findings}, not shown")


def _group(group: Group, family: Family, where: str) -> Iterator[str]:
    entry = group.entry
    yield f"{entry.id}  {entry.title}{where}"
    yield from _field("before", entry.before)
    yield from _field("after", entry.after)
    for index, finding in enumerate(group.findings[:_SUBJECTS]):
        yield from _field(
            "affects" if index == 0 else "", f"{finding.subject}{_places(finding)}{_detail(finding)}"
        )
    hidden = len(group.findings) - _SUBJECTS
    if hidden > 0:
        yield from _field("", f"and {hidden} more; --format json lists them all")
    if group.example is not None:
        yield from _example(group.example, family)
    yield from _field("traffic seen", traffic_text(group.findings))
    yield from _field("action", entry.action)
    yield ""


def _places(finding: Finding) -> str:
    lines = [line.origin.line for line in finding.lines]
    if not lines:
        return ""
    shown = ", ".join(map(str, lines[:4])) + (", …" if len(lines) > 4 else "")
    return f" (line{'s' if len(lines) > 1 else ''} {shown})"


def _detail(finding: Finding) -> str:
    text = finding.description or next((e.description for e in finding.examples if e.description), "")
    return f": {text}" if text else ""


def _example(changed: ChangedPacket, family: Family) -> Iterator[str]:
    place = "made on the node" if changed.entry is None else f"in {changed.entry}"
    if changed.measured:
        yield from _field("example", f"{counted(len(changed.flow.steps), 'packet')}: {changed.flow.why}")
    else:
        more = "" if changed.step == 0 else f", its packet {changed.step + 1}"
        yield from _field("example", f"{changed.packet} {place}{more}")
        yield from _field("  before", outcome_text(changed.before, family))
        yield from _field("  after", after_text(changed, family))
    yield from _field("reproduce", f"--only {shlex.quote(changed.flow.id)}")


def traffic_text(findings: Iterable[Finding]) -> str:
    """Return the counts of packets that matched the lines of findings, in words."""
    findings = tuple(findings)
    if not all(finding.counted for finding in findings):
        return "unknown: no rule counts such packets"
    counted = [(finding.traffic_seen, finding) for finding in findings]
    known = [(packets, finding) for packets, finding in counted if packets is not None]
    if not known:
        return "unknown: the dump has no counters (iptables-save -c)"
    used = sorted(((p, f.subject) for p, f in known if p), reverse=True)
    if not used:
        return "none: no packet has matched these lines"
    shown = [f"{subject}: {packets} packets" for packets, subject in used[:_SUBJECTS]]
    hidden = len(used) - _SUBJECTS
    return f"{', '.join(shown)}{f' and {hidden} more' if hidden > 0 else ''} matched these lines"


def _leak(leak: Leak, family: Family, where: str) -> Iterator[str]:
    changed = leak.examples[0]
    yield f"LEAK  {leak.kind}: leaves by the default route ({leak.device}){where}"
    yield from _example(changed, family)
    yield from _field("after", "still leaves" if leak.remains else "no longer leaves")
    yield from _field("action", "add a blackhole route for the service range: ip route add blackhole RANGE")
    yield ""


def _order(difference: OrderDifference, family: Family, where: str) -> Iterator[str]:
    changed = difference.examples[0]
    first, second = order_outcomes(changed, family)
    place = "made on the node" if changed.entry is None else f"in {changed.entry}"
    more = "" if changed.step == 0 else f", its packet {changed.step + 1}"
    yield f"ORDER  {TITLE}{where}"
    yield from _field("decides", f"{difference.subject} ({'; '.join(difference.order.places)})")
    lines = [line.origin.line for line in difference.lines]
    if lines:
        shown = ", ".join(map(str, lines[:8])) + (", …" if len(lines) > 8 else "")
        yield from _field("rules", f"line{'s' if len(lines) > 1 else ''} {shown}")
    yield from _field("example", f"{changed.packet} {place}{more}")
    yield from _field("  kube-proxy", f"first: {first}")
    yield from _field("  the others", f"first: {second}")
    kube_proxy_first, others_first = ways_text(difference)
    yield from _field("reached", f"kube-proxy first: {kube_proxy_first}")
    yield from _field("", f"the others first: {others_first}")
    yield from _field("affects", f"{counted(len(difference.examples), 'flow')} of those that were sent")
    yield from _field("reproduce", f"--only {shlex.quote(changed.flow.id)}")
    yield from _field("action", ACTION)
    yield ""


def _unexplained(finding: Finding, family: Family) -> Iterator[str]:
    yield "UNEXPLAINED  a difference that is not in the catalogue"
    for changed in finding.examples:
        yield from _example(changed, family)
        yield from _field("differs", ", ".join(changed.fields))
    yield ""


def _field(name: str, text: str) -> Iterator[str]:
    """Yield a name and a text as wrapped lines."""
    lead = f"  {name:<12} "
    wrapped = textwrap.wrap(text, _WIDTH - len(lead), break_long_words=False, break_on_hyphens=False)
    for index, part in enumerate(wrapped or [""]):
        yield (lead if index == 0 else " " * len(lead)) + part


def _verdict(summary: Summary) -> Iterator[str]:
    known = sorted({f.entry.id for a in summary.assessments for f in a.findings if f.entry is not None})
    unexplained = sum(len(a.unexplained) for a in summary.assessments)
    kinds = sum(len(a.leaks) for a in summary.assessments)
    flows = sum(a.flows for a in summary.assessments)
    checked = sorted({c.entry.id for a in summary.assessments for c in a.checked})
    if checked:
        yield f"not found on this node: {', '.join(checked)}"
    if not summary.changes:
        if summary.accepted:
            yield f"nothing changes except the accepted findings; {flows} flows"
            return
        where = " in what was tested" if summary.untested else ""
        yield f"nothing changes{where}: {counted(flows, 'flow has', 'flows have')} the same outcome"
        return
    yield f"to reproduce an example: {summary.command(None)} ID"
    names = f" ({', '.join(known)})" if known else ""
    leaking = f", {counted(kinds, 'kind')} of leaks" if kinds else ""
    by_order = sum(len(a.orders) for a in summary.assessments)
    leaking += f", {counted(by_order, 'difference')} between orders" if by_order else ""
    differences = counted(len(known), "known difference")
    yield f"{differences}{names}, {unexplained} unexplained{leaking}; {counted(flows, 'flow')}"
