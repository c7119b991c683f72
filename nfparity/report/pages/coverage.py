"""The page of ``nfparity corpus coverage``: the rules that no packet hits, by table, with the reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from harness.corpus.coverage import CoverageReport, CoveredRule
from harness.counted import counted
from nfparity.assess.node.index import ServiceIndex
from nfparity.kubeproxy import recover
from nfparity.report.pages.content import Finding, Level, Line, Page, Section
from nfparity.report.pages.hops import service_names
from nfparity.report.pages.page import render
from translate.dataclass import dataclass
from translate.ir import Ruleset

__all__ = ["Covered", "coverage_page"]

_NOT_HIT: Final = Level("breaks", "Not hit", "no packet of the corpus matches the rule")
_DISPUTED: Final = Level("doubt", "Disputed", "a packet matches a rule that is proven unreachable")
_IDLE: Final = Level("changes", "No effect", "no packet matches the rule, and a match would change nothing")
_UNREACHABLE: Final = Level("snapshot", "Unreachable", "proven: no packet can match the rule")
_LEVELS: Final = (_NOT_HIT, _DISPUTED, _IDLE, _UNREACHABLE)


@dataclass(frozen=True, slots=True)
class Covered:
    """The coverage of one ruleset, with the ruleset."""

    report: CoverageReport
    ruleset: Ruleset


def coverage_page(covered: Sequence[Covered], *, command: str, version: str) -> str:
    """Return the reports as a page; ``command`` makes it again, ``version`` is this program's."""
    tables = tuple(table for number, each in enumerate(covered) for table in _tables(each, number))
    several = len(covered) > 1
    reports = [each.report for each in covered]
    missed = sum(len(report.missed) for report in reports)
    page = Page(
        title="Rules that the packets hit",
        verdict=_verdict(reports),
        good=not missed and not any(_is_disputed(rule) for report in reports for rule in report.rules),
        levels=_LEVELS,
        sections=tuple(table.section(several=several) for table in tables if table.findings),
        facts=(
            ("Rules", ", ".join(report.source for report in reports)),
            ("Packets", counted(sum(report.flows for report in reports), "flow")),
            ("Counted by", ", ".join(dict.fromkeys(report.counted_by for report in reports))),
            ("Reproduce", command),
        ),
        kind="Table",
        notes=(("Tables", tuple(table.line(several=several) for table in tables)),) if tables else (),
    )
    return render("findings.html", {"page": page, "version": version})


def _verdict(reports: Sequence[CoverageReport]) -> str:
    rules = sum(len(report.rules) for report in reports)
    missed = sum(len(report.missed) for report in reports)
    unreachable = sum(len(report.unreachable) for report in reports)
    disputed = sum(_is_disputed(rule) for report in reports for rule in report.rules)
    hit = sum(bool(rule.matched) for report in reports for rule in report.rules)
    parts = [f"{hit} of {counted(rules, 'rule')} {'is' if hit == 1 else 'are'} hit"]
    parts.append(f"{missed} {'is' if missed == 1 else 'are'} not")
    if unreachable:
        parts.append(f"{unreachable} cannot be reached")
    if disputed:
        parts.append(f"for {disputed}, proof and packets disagree")
    return "; ".join(parts) + "."


def _is_disputed(rule: CoveredRule) -> bool:
    return rule.unreachable is not None and rule.matched > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A table of a ruleset: its findings, the gravest first, and its numbers of rules."""

    id: str
    source: str
    name: str
    rules: int
    hit: int
    findings: tuple[Finding, ...]

    def section(self, *, several: bool) -> Section:
        """Return the findings; the title names the file if there are several."""
        where = f" of {self.source}" if several else ""
        return Section(
            id=self.id,
            name=self.name,
            title=f"{self.hit} of {counted(self.rules, 'rule')}{where} hit",
            findings=self.findings,
        )

    def line(self, *, several: bool) -> str:
        """Return the numbers in a sentence."""
        where = f"{self.source}: " if several else ""
        return f"{where}{self.name}: {self.hit} of {counted(self.rules, 'rule')} hit"


def _tables(covered: Covered, number: int) -> Iterator[_Table]:
    ruleset = covered.ruleset
    index = ServiceIndex.of(recover(ruleset)).lines
    service_of = service_names(index, ruleset.family)
    by_table: dict[str, list[CoveredRule]] = {table.name.value: [] for table in ruleset.tables}
    for rule in covered.report.rules:
        by_table[rule.table].append(rule)
    for name, rules in by_table.items():
        if not rules:
            continue
        services = {rule.rule.origin.line: service_of(rule.rule.origin.line) for rule in rules}
        findings = [
            _finding(rule, level, services)
            for rule in rules
            for level in (_level(rule),)
            if level is not None
        ]
        yield _Table(
            id=f"rules-{number}-{name}",
            source=covered.report.source,
            name=name,
            rules=len(rules),
            hit=sum(bool(rule.matched) for rule in rules),
            findings=tuple(sorted(findings, key=lambda finding: _LEVELS.index(finding.level))),
        )


def _level(rule: CoveredRule) -> Level | None:
    """Return the severity of a rule; None for one that is hit and should be."""
    if rule.unreachable is not None:
        return _DISPUTED if rule.matched else _UNREACHABLE
    if rule.matched:
        return None
    return _NOT_HIT if rule.idle is None else _IDLE


def _finding(rule: CoveredRule, level: Level, services: Mapping[int, str]) -> Finding:
    origin = rule.rule.origin
    service = services[origin.line]
    counters = rule.rule.counters
    return Finding(
        level=level,
        subject=f"{rule.chain} rule {rule.number}" + (f", {service}" if service else ""),
        packet=origin.text.strip() or "a rule that the input hides",
        detail=_reason(rule),
        lines=(Line(origin.file, origin.line, origin.text, None if counters is None else counters.packets),),
    )


def _reason(rule: CoveredRule) -> str:
    if rule.unreachable is not None:
        disputed = f"; yet it matched {counted(rule.matched, 'time')}" if rule.matched else ""
        return f"{rule.unreachable}{disputed}"
    if rule.idle is not None:
        return f"would change nothing: {rule.idle}"
    if rule.passed is None:
        return "the kernel counted no packet for it"
    if rule.passed:
        return f"{counted(rule.passed, 'packet')} came to it and did not match"
    return "no packet came to it"
