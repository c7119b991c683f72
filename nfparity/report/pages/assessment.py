"""The page of ``nfparity assess``: findings by difference, each with its packet's path before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from backends.model.contract import Job
from backends.model.flow import Send
from backends.simulator import Simulation, TracedBranch
from harness.counted import counted
from nfparity.assess.assessing import Assessment
from nfparity.assess.assessing import Finding as AssessFinding
from nfparity.assess.difference import ChangedPacket
from nfparity.assess.leaks import Leak
from nfparity.assess.replay.orders import OrderDifference
from nfparity.assess.severity import Severity, order_severity, severity_of
from nfparity.assess.summary import Group, Summary
from nfparity.report.assessment import traffic_text
from nfparity.report.orders import ACTION, TITLE, order_outcomes, ways_text
from nfparity.report.outcometext import after_text, outcome_text
from nfparity.report.pages.content import Finding, Line, Page, Path, Section, changed_fields
from nfparity.report.pages.drawing import PathDrawer, observed_drawing
from nfparity.report.pages.hops import observed_hops, service_names, traced_hops
from nfparity.report.pages.levels import LEVELS, rank
from nfparity.report.pages.page import render
from translate.dataclass import replace
from translate.errors import InputError

__all__ = ["assessment_page"]

_OTHERS: Final = 10
"""The maximum number of further packets per finding."""


def assessment_page(summary: Summary, *, version: str) -> str:
    """Return the assessment as a page; ``version`` is this program's."""
    return render("findings.html", {"page": _page(summary), "version": version})


def _page(summary: Summary) -> Page:
    sections = tuple(section for each in summary.assessments for section in _Sections(summary, each).all())
    flows = sum(assessment.flows for assessment in summary.assessments)
    after = f"nftables rules that kube-proxy {summary.kubernetes} would load"
    if summary.against is not None:
        after = f"nftables rules {summary.against}"
    mode, services = ("ipvs", "virtual services and ") if summary.from_ipvs else ("iptables", "")
    assumed = dict.fromkeys(a for assessment in summary.assessments for a in assessment.facts.assumed)
    checked = {c.entry.id: c.entry.title for a in summary.assessments for c in a.checked}
    notes = (
        ("Not tested", tuple(map(str, summary.untested))),
        ("Assumptions", tuple(assumed)),
        ("Known differences not found on this node", tuple(f"{k}: {checked[k]}" for k in sorted(checked))),
    )
    page = Page(
        title=f"{summary.snapshot}: from kube-proxy's {mode} mode to nftables",
        verdict="",
        good=not summary.changes and not summary.untested,
        levels=tuple(LEVELS.values()),
        sections=tuple(sorted(sections, key=rank)),
        kind="Difference",
        facts=(
            ("Before", f"{services}iptables rules of {summary.snapshot}"),
            ("After", after),
            ("Packets", f"{counted(flows, 'flow')} through both on the kernel"),
            ("Reproduce", f"{summary.command(None)} ID"),
        ),
        notes=tuple(note for note in notes if note[1]),
    )
    return replace(page, verdict=_verdict(page, summary, flows))


def _verdict(page: Page, summary: Summary, flows: int) -> str:
    untested = "".join(f" IPv{each.family.version} was not tested." for each in summary.untested)
    if not page.findings:
        where = " in what was tested" if summary.untested else ""
        return (
            f"Nothing changes{where}: {counted(flows, 'flow has', 'flows have')} the same outcome.{untested}"
        )
    counts = {level.id: count for level, count in page.counts}
    broken = counts.get("breaks", 0)
    head = "No compared packet loses its receiver"
    if broken:
        head = f"{counted(broken, 'finding breaks', 'findings break')} traffic that works today"
    others = page.findings - broken
    tail = f"; {counted(others, 'other finding')}" if others else ""
    return f"{head}{tail}, in {counted(flows, 'flow')}.{untested}"


class _Sections:
    """The sections of one family."""

    def __init__(self, summary: Summary, assessment: Assessment) -> None:
        self._summary = summary
        self._assessment = assessment
        self._facts = assessment.facts
        self._family = assessment.facts.family
        self._service_of = service_names(assessment.facts.index.lines, self._family)
        self._drawer = PathDrawer(self._facts.ruleset, self._service_of)
        self._where = f" (IPv{self._family.version})" if len(summary.assessments) > 1 else ""
        self._through = "kube-proxy's nftables rules"
        if assessment.facts.other_rules.ruleset.tables:
            self._through += " and the other iptables rules"

    @cached_property
    def _simulation(self) -> Simulation:
        return Simulation(Job(rules=self._facts.ruleset, node=self._facts.node))

    def all(self) -> Iterator[Section]:
        """Yield every section with findings: known differences, unexplained ones, leaks, flows not judged."""
        for group in self._summary.groups(self._assessment):
            yield self._known(group)
        if self._assessment.unexplained:
            yield self._section(
                "UNEXPLAINED",
                "differences that are not in the catalogue",
                [self._finding(f, f.examples[0].flow.id) for f in self._assessment.unexplained],
            )
        if self._assessment.orders:
            yield self._section(
                "ORDER", TITLE, list(map(self._order, self._assessment.orders)), ("Action", ACTION)
            )
        if self._assessment.leaks:
            yield self._section(
                "LEAK",
                "traffic to service addresses leaves by the default route",
                list(map(self._leak, self._assessment.leaks)),
                ("Action", "add a blackhole route for the service range: ip route add blackhole RANGE"),
            )
        if self._assessment.disputed:
            level = LEVELS[Severity.NOT_JUDGED]
            yield self._section(
                "NOT-JUDGED",
                "simulator and kernel disagree before the change",
                [
                    Finding(level=level, subject=each.flow_id, detail=each.description)
                    for each in self._assessment.disputed
                ],
            )

    def _section(
        self, name: str, title: str, findings: Sequence[Finding], *facts: tuple[str, str]
    ) -> Section:
        return Section(
            id=f"{name}-{self._family.value}",
            name=name,
            title=f"{title}{self._where}",
            findings=tuple(sorted(findings, key=lambda finding: rank(finding.level))),
            facts=facts,
        )

    def _known(self, group: Group) -> Section:
        entry = group.entry
        return self._section(
            entry.id,
            entry.title,
            [self._finding(finding, finding.subject) for finding in group.findings],
            ("Before", entry.before),
            ("After", entry.after),
            ("Action", entry.action),
            ("Source", entry.source),
        )

    def _finding(self, finding: AssessFinding, subject: str) -> Finding:
        lines = tuple(Line(e.origin.file, e.origin.line, e.origin.text, e.packets) for e in finding.lines)
        level = LEVELS[severity_of(finding, self._facts)]
        if not finding.examples:
            return Finding(level=level, subject=subject, detail=finding.description, lines=lines)
        shown = replace(self._shown(finding.examples), level=level, subject=subject, lines=lines)
        return replace(shown, traffic=traffic_text((finding,)))

    def _order(self, difference: OrderDifference) -> Finding:
        changed, *others = difference.examples
        first, second = order_outcomes(changed, self._family)
        place = "made on the node" if changed.entry is None else f"in {changed.entry}"
        kube_proxy_first, others_first = ways_text(difference)
        causes = f"kube-proxy first: {kube_proxy_first}. The others first: {others_first}."
        lines = tuple(Line(e.origin.file, e.origin.line, e.origin.text, e.packets) for e in difference.lines)
        return Finding(
            level=LEVELS[order_severity(difference)],
            subject=difference.subject,
            packet=f"{changed.packet} {place}",
            before=f"kube-proxy's chains first: {first}",
            after=f"the others first: {second}",
            detail=causes,
            command=self._summary.command(changed),
            lines=lines,
            more=len(others),
        )

    def _leak(self, leak: Leak) -> Finding:
        remains = (
            "it still leaves after the change" if leak.remains else "it no longer leaves after the change"
        )
        return replace(
            self._shown(leak.examples),
            level=LEVELS[Severity.BEFORE],
            subject=f"{leak.kind}, by {leak.device}",
            detail=remains,
        )

    def _shown(self, examples: Sequence[ChangedPacket]) -> Finding:
        """Return a finding with the first of its packets in full, and others in short."""
        first, *others = examples
        if first.measured:
            return Finding(
                level=LEVELS[Severity.CHANGES],
                subject="",
                packet=f"{counted(len(first.flow.steps), 'packet')}: {first.flow.why}",
                detail=first.description,
                command=self._summary.command(first),
                more=len(others),
            )
        place = "made on the node" if first.entry is None else f"in {first.entry}"
        later = "" if first.step == 0 else f", its packet {first.step + 1}"
        before, after = self._ends(first)
        return Finding(
            level=LEVELS[Severity.CHANGES],
            subject="",
            packet=f"{first.packet} {place}{later}",
            before=before,
            after=after,
            detail=first.flow.why,
            command=self._summary.command(first),
            fields=changed_fields(first.before, first.after, self._family),
            paths_before=tuple(self._paths(first)),
            paths_after=(self._after(first),),
            others=tuple((str(each.packet), *self._ends(each), each.flow.id) for each in others[:_OTHERS]),
            more=max(0, len(others) - _OTHERS),
        )

    def _ends(self, changed: ChangedPacket) -> tuple[str, str]:
        if changed.description:
            return "", changed.description
        return outcome_text(changed.before, self._family), after_text(changed, self._family)

    def _paths(self, changed: ChangedPacket) -> Iterator[Path]:
        """Yield the path of the connection's first packet, if it is another packet, and the packet's path."""
        branch = self._branch(changed)
        if branch is None:
            return
        sent = max(i for i in range(changed.step + 1) if isinstance(changed.flow.steps[i], Send))
        for step in dict.fromkeys((sent, changed.step)):
            whose = "Through the iptables rules" if step == changed.step else "First packet of the connection"
            hops = traced_hops(branch.steps[step], self._family, self._service_of)
            yield Path(whose, hops, self._drawer.draw(branch.steps[step]))

    def _branch(self, changed: ChangedPacket) -> TracedBranch | None:
        """Return the traced branch with the outcome before the change; None if the rules leave it open."""
        try:
            branches = self._simulation.trace(changed.flow, every_rule=False)
        except InputError:
            return None
        fitting = (branch for branch in branches if branch.steps[changed.step].outcome == changed.before)
        return next(fitting, None)

    def _after(self, changed: ChangedPacket) -> Path:
        step = changed.flow.steps[changed.step]
        what = str(step.packet) if isinstance(step, Send) else "a later packet of the connection"
        place = "made on the node" if changed.entry is None else f"in {changed.entry}"
        hops = observed_hops(
            changed.after,
            self._family,
            entry=f"{what} {place}" if isinstance(step, Send) else what,
            through=self._through,
            text=after_text(changed, self._family),
        )
        return Path("Through the nftables rules", hops, observed_drawing(hops))
