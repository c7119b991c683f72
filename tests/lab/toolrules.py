"""Parity of rules that real tools wrote: ufw, Docker, libvirt and others, captured in ``tests/corpus/tools``.

``python -m tests.lab.toolrules`` makes flows for each rule of each capture and replays them on every backend.
``tests/corpus/tools/capture.sh`` takes the captures anew.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from backends.model.contract import Backend, Job
from harness.corpus.generate import generate_corpus
from harness.diff.backends import BACKENDS, parse_backends
from harness.diff.parity import choose_backends
from harness.report.text import print_parity
from harness.status import worst_status
from nfparity.snapshot import Snapshot, load_snapshot
from nfparity.snapshot.snapshot import holds_rules
from tests.lab.errors import print_error
from tests.lab.selfcheck import LEVELS, Subject, check
from translate.errors import InputError, MachineError

__all__ = ["FOLDER", "captures", "subjects"]

FOLDER: Final = Path("tests/corpus/tools")
"""One folder for each tool, with ``make.sh`` and the snapshot ``node``; relative to the project's root."""


def captures(folder: Path = FOLDER) -> dict[str, Snapshot]:
    """Return the snapshots by the names of their tools."""
    return {path.parent.name: load_snapshot(str(path)) for path in sorted(folder.glob("*/node"))}


def subjects(name: str, snapshot: Snapshot) -> Iterator[Subject]:
    """Yield the rules of each family of a snapshot, if it has any, with the flows that are made from them.

    A rule that no flow reaches is no error: tools write rules that others before them make idle.
    """
    for family in snapshot.families:
        ruleset = snapshot.ruleset(family)
        if holds_rules(ruleset):
            made = generate_corpus(Job(rules=ruleset, node=snapshot.node), seed=0, exhaustive=True)
            yield Subject(f"{name} IPv{family.version}", ruleset, snapshot.node, made.flows)


def main() -> int:
    """Print a line for each capture and backend, and the differences; return the worst exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.toolrules", description=__doc__)
    parser.add_argument("tools", metavar="TOOL", nargs="*", help="default: all of them")
    parser.add_argument("--backends", metavar="A,B", default=",".join(BACKENDS), help="default: all")
    parser.add_argument("--levels", default=",".join(map(str, LEVELS)), help="default: %(default)s")
    options = parser.parse_args()
    try:
        return _run(options)
    except (InputError, MachineError) as e:
        return print_error(e)


def _run(options: argparse.Namespace) -> int:
    able, skipped = choose_backends(parse_backends(options.backends), requested=False)
    for choice in skipped:
        print(f"{choice.name} is skipped: {choice.skipped}")
    worst = 0
    for name, snapshot in captures().items():
        if options.tools and name not in options.tools:
            continue
        for subject in subjects(name, snapshot):
            print(
                f"{subject.name}: {sum(1 for _ in subject.ruleset.rules())} rules, {len(subject.flows)} flows"
            )
            for number, level in enumerate(map(int, options.levels.split(","))):
                here = [choice for choice in able if number == 0 or not choice.name.startswith("iptables-")]
                worst = worst_status((worst, _check(subject, here, level)))
    return worst


def _check(subject: Subject, backends: list[Backend], level: int) -> int:
    worst = 0
    for report in check(subject, backends, level=level, repeat=0):
        for compared in report.backends:
            result = f"{compared.flows:5} flows {compared.differing:4} different"
            if compared.untested:
                result = f"not tested: {compared.untested[0]}"
            print(f"  -O{level} {compared.name:<16} {result}", flush=True)
        if report.differences:
            print_parity(report, sys.stdout)
        worst = worst_status((worst, report.status))
    return worst


if __name__ == "__main__":
    sys.exit(main())
