"""A coverage report as text and as JSON."""

from __future__ import annotations

from typing import TextIO

from harness.corpus.coverage import CoverageReport, CoveredRule
from harness.corpus.formats.ruletext import place
from harness.counted import counted

__all__ = ["coverage_to_json", "print_coverage"]


def print_coverage(report: CoverageReport, stream: TextIO) -> None:
    """Print the rules that are not hit, and the unreachable rules with the proofs."""
    hit = sum(1 for r in report.rules if r.matched)
    miss = "misses" if report.flows == 1 else "miss"
    print(
        f"{report.source}: {counted(len(report.rules), 'rule')};"
        f" {counted(report.flows, 'flow hits', 'flows hit')} {hit}, {miss} {len(report.missed)};"
        f" {len(report.unreachable)} cannot be reached (counted by {report.counted_by})",
        file=stream,
    )
    _section("not hit", report.missed, stream)
    _section("cannot be reached", report.unreachable, stream)
    wrong = [r for r in report.unreachable if r.matched]
    for rule in wrong:
        print(
            f"proof and packets disagree: {place(rule.rule)} matched {counted(rule.matched, 'time')}",
            file=stream,
        )


def _section(title: str, rules: tuple[CoveredRule, ...], stream: TextIO) -> None:
    if not rules:
        return
    print(f"\n{title}:", file=stream)
    for rule in rules:
        print(f"  {place(rule.rule)}", file=stream)
        if rule.unreachable is not None:
            print(f"      {rule.unreachable}", file=stream)
        elif rule.idle is not None:
            print(f"      would change nothing: {rule.idle}", file=stream)


def coverage_to_json(report: CoverageReport) -> dict[str, object]:
    """Return the report as a JSON object with every rule."""
    return {
        "rules": report.source,
        "counted_by": report.counted_by,
        "flows": report.flows,
        "total": len(report.rules),
        "hit": sum(1 for r in report.rules if r.matched),
        "missed": len(report.missed),
        "unreachable": len(report.unreachable),
        "by_rule": [_rule(r) for r in report.rules],
    }


def _rule(covered: CoveredRule) -> dict[str, object]:
    return {
        "file": covered.rule.origin.file,
        "line": covered.rule.origin.line,
        "table": covered.table,
        "chain": covered.chain,
        "number": covered.number,
        "rule": covered.rule.origin.text,
        "matched": covered.matched,
        "not_matched": covered.passed,
        "unreachable": covered.unreachable,
        "idle": covered.idle,
    }
