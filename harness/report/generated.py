"""The report of a generated corpus: its coverage, and the rules without a flow."""

from __future__ import annotations

from typing import TextIO

from harness.corpus.generate import GeneratedCorpus
from harness.corpus.ruletext import place

__all__ = ["print_generated"]


def print_generated(made: GeneratedCorpus, stream: TextIO) -> None:
    """Print the counts, and the rules that no flow hits, with reasons."""
    report = made.coverage
    hit = sum(1 for r in report.rules if r.matched)
    print(
        f"{report.source}: {len(made.flows)} flows hit {hit} of {len(report.rules)} rules;"
        f" {made.alone} tests fail alone, {made.together} only with others;"
        f" {made.services} services",
        file=stream,
    )
    for covered in report.unreachable:
        print(f"  cannot be reached: {place(covered.rule)}\n      {covered.unreachable}", file=stream)
    for covered in report.missed:
        doubt = made.doubts[covered.table, covered.chain, covered.number - 1]
        print(f"  no flow found: {place(covered.rule)}\n      {doubt}", file=stream)
