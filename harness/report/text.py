"""Text reports: a table and the differences; colours only on a terminal."""

from __future__ import annotations

import json
from typing import Final, TextIO, assert_never

from harness.counted import counted
from harness.diff.result import BackendReport, Difference, ParityReport, Result
from harness.report.notes import note_lines
from harness.report.terminal import plain, unfiltered

__all__ = ["format_value", "print_parity", "verdict_text"]

_SHOWN = 50


def format_value(value: object) -> str:
    """Return a value of a difference as text; ``(nothing)`` if it is absent."""
    if value is None:
        return "(nothing)"
    return value if isinstance(value, str) else json.dumps(value)


def print_parity(report: ParityReport, stream: TextIO) -> None:
    """Print a parity report."""
    for assumption in report.assumed:
        print(f"assumed {assumption}", file=stream)
    for line in note_lines(report.notes):
        print(line, file=stream)
    for number, difference in enumerate(report.differences[:_SHOWN], start=1):
        _print_difference(number, difference, len(report.differences), stream)
    hidden = len(report.differences) - _SHOWN
    if hidden > 0:
        print(f"and {hidden} more differences; --format json lists them all\n", file=stream)
    _print_table(report, stream)
    for sentence in filter(None, (_left_open(report), _chance(report))):
        print(sentence, file=stream)
    print(verdict_text(report), file=stream)


def _print_difference(number: int, difference: Difference, total: int, stream: TextIO) -> None:
    source = f" ({difference.flow_source})" if difference.flow_source else ""
    lines = [
        f"difference {number} of {total}: {difference.backend}, flow {plain(difference.flow_id)}{source}",
        f"  at          {difference.step_text}",
        f"  field       {difference.field}",
        f"  expected    {format_value(difference.expected)}",
        f"  observed    {format_value(difference.observed)}",
    ]
    label = "decided by"
    for rule in difference.rules:
        lines.append(f"  {label:<12}{rule}")
        label = ""
    lines.append(f"  replay      {difference.command}")
    print("\n".join(lines) + "\n", file=stream)


def _print_table(report: ParityReport, stream: TextIO) -> None:
    rows = [_row(backend) for backend in report.backends]
    if stream.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table("backend", "flows", "different", "")
        for backend, row in zip(report.backends, rows, strict=True):
            waiting = backend.skipped is not None or backend.untested
            style = "red" if backend.differing else "yellow" if waiting else "green"
            table.add_row(*map(plain, row), style=style)
        Console(file=unfiltered(stream), highlight=False, markup=False).print(table)
        return
    width = max(len(r[0]) for r in rows) if rows else 0
    print(f"{'backend':<{width}}  {'flows':>7}  {'different':>9}", file=stream)
    for name, flows, differing, note in rows:
        print(f"{name:<{width}}  {flows:>7}  {differing:>9}  {note}".rstrip(), file=stream)


def _row(backend: BackendReport) -> tuple[str, str, str, str]:
    if backend.skipped is not None:
        return backend.name, "-", "-", f"skipped: {backend.skipped}"
    untested = "; ".join(backend.untested)
    if untested and not backend.flows:
        return backend.name, "-", "-", f"not tested: {untested}"
    left = sum(case.untested is not None for case in backend.cases)
    return (
        backend.name,
        str(backend.flows),
        str(backend.differing),
        f"{left} not tested: {untested}" if untested else "",
    )


def verdict_text(report: ParityReport) -> str:
    """Return the result of the whole run as a sentence."""
    what = counted(report.flows, "flow") + ("" if report.level is None else f" at -O{report.level}")
    if report.share_tests:
        what += (
            f" ({counted(report.share_tests, 'share test')}, false-alarm rate {report.false_alarm_rate:g})"
        )
    skipped = sum(b.skipped is not None for b in report.backends)
    tail = f"; {counted(skipped, 'backend')} skipped" if skipped else ""
    untested = ", ".join(b.name for b in report.backends if b.untested)
    match report.result:
        case Result.PARITY:
            return f"parity: {what}, no difference{tail}"
        case Result.NOT_TESTED:
            return f"not tested: {untested}; no difference in the tested part of {what}{tail}"
        case Result.DIFFERENCES:
            tail += f"; not tested: {untested}" if untested else ""
            flows = len({d.flow_id for d in report.differences})
            differences = counted(len(report.differences), "difference")
            return f"no parity: {differences} in {flows} of {what}{tail}"
        case _:
            assert_never(report.result)


_MOST_RULES: Final = 5


def _left_open(report: ParityReport) -> str:
    """Return a line about flows that depend on unmodelled parts, with their number and the rules."""
    if not report.left_open:
        return ""
    flows = counted(report.left_open, "flow depends", "flows depend")
    rules = report.open_rules[:_MOST_RULES]
    more = len(report.open_rules) - len(rules)
    shown = "".join(f"\n  {plain(rule)}" for rule in rules) + (f"\n  and {more} more" if more else "")
    return f"{flows} on rules that are not modelled; a backend agrees with any possible effect:{shown}"


def _chance(report: ParityReport) -> str:
    """Return the line about random flows and the chance of a missed path."""
    if not report.repeated:
        return ""
    flows = counted(report.chancy, "flow has", "flows have")
    runs = report.repeated + report.chancy
    if report.miss >= 1:
        return f"{flows} random outcomes, and ran {runs} times"
    return (
        f"{flows} random outcomes; in {runs} runs, "
        f"an outcome is missed with probability {report.miss:g} per flow"
    )
