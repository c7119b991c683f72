"""Parity of rules that real tools wrote: ufw, Docker, libvirt and others, captured in ``tests/corpus/tools``.

``python -m tests.lab.toolrules`` makes flows for each rule of each capture and replays them on every backend.
``tests/corpus/tools/capture.sh`` takes the captures anew.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from backends.model.contract import Job
from harness.corpus.generate import generate_corpus
from nfparity.snapshot import Snapshot, load_snapshot
from nfparity.snapshot.snapshot import holds_rules
from tests.lab.errors import print_error
from tests.lab.selfcheck import Subject, check_options, print_checks
from translate.errors import InputError, MachineError, UnsupportedError

__all__ = ["FOLDER", "captures", "subjects"]

FOLDER: Final = Path("tests/corpus/tools")
"""One folder for each tool, with ``make.sh`` and the snapshot ``node``; relative to the project's root."""


def captures(folder: Path = FOLDER) -> dict[str, Snapshot]:
    """Return the snapshots by the names of their tools."""
    return {path.parent.name: load_snapshot(str(path)) for path in sorted(folder.glob("*/node"))}


def subjects(names: Sequence[str] = (), folder: Path = FOLDER) -> Iterator[Subject]:
    """Yield the rules of each family of the named captures, with the flows that are made from them.

    Without names, those of all captures. A rule that no flow reaches is no error, because tools write rules
    that have no effect after earlier ones. Rules that the simulator refuses are printed with the reason, and
    have no flows.
    """
    for name, snapshot in captures(folder).items():
        for family in snapshot.families:
            ruleset = snapshot.ruleset(family)
            if (names and name not in names) or not holds_rules(ruleset):
                continue
            title = f"{name} IPv{family.version}"
            try:
                made = generate_corpus(Job(rules=ruleset, node=snapshot.node), seed=0, exhaustive=True)
            except UnsupportedError as e:
                print(f"{title}: refused: {e}")
                continue
            yield Subject(title, ruleset, snapshot.node, made.flows)


def main() -> int:
    """Print a line for each capture and backend, and the differences; return the worst exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.toolrules", description=__doc__)
    parser.add_argument("tools", metavar="TOOL", nargs="*", help="default: all of them")
    check_options(parser)
    options = parser.parse_args()
    try:
        return print_checks(subjects(options.tools), options)
    except (InputError, MachineError) as e:
        return print_error(e)


if __name__ == "__main__":
    sys.exit(main())
