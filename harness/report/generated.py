"""The report of a generated corpus: its coverage, and the rules without a flow."""

from __future__ import annotations

from typing import TextIO

from harness.corpus.formats.ruletext import place
from harness.corpus.generate import GeneratedCorpus
from harness.counted import counted

__all__ = ["print_generated"]


def print_generated(made: GeneratedCorpus, stream: TextIO) -> None:
    """Print the counts, and the rules that no flow hits, with reasons."""
    report = made.coverage
    hit = sum(1 for r in report.rules if r.matched)
    print(
        f"{report.source}: {counted(len(made.flows), 'flow hits', 'flows hit')} {hit}"
        f" of {counted(len(report.rules), 'rule')};"
        f" {counted(made.alone, 'test')} failed alone by a flow, {made.together} only together with others;"
        f" {counted(made.services, 'service')}",
        file=stream,
    )
    for covered in report.unreachable:
        print(f"  cannot be reached: {place(covered.rule)}\n      {covered.unreachable}", file=stream)
    for covered in report.missed:
        doubt = made.doubts[covered.table, covered.chain, covered.number - 1]
        print(f"  no flow found: {place(covered.rule)}\n      {doubt}", file=stream)
