"""Plant every fault and print the table: ``python -m tests.lab.mutation``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from harness.diff.batch import Batch
from tests.lab.errors import print_error
from tests.lab.mutation.rulesets import RULESETS, batches_of
from tests.lab.mutation.table import print_table
from tests.lab.mutation.trial import SUBJECTS, Trial, try_all
from translate.errors import InputError, MachineError, UnsupportedError

_RULES: Final = "kind,cluster,cluster6"
"""The rulesets that are small enough for planting every fault."""


def main() -> int:
    """Print the table; return 0 if every fault is caught, refused, or proven to change nothing."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.mutation", description=__doc__)
    parser.add_argument("--rules", default=_RULES, help=f"of {', '.join(RULESETS)}; default: {_RULES}")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="plant only every Nth fault")
    parser.add_argument("--subjects", default=",".join(SUBJECTS), help=f"of {', '.join(SUBJECTS)}")
    options = parser.parse_args()
    trials: list[Trial] = []
    try:
        for name in options.rules.split(","):
            batches = batches_of(name)
            for subject in options.subjects.split(","):
                trials += _tried(name, batches, subject, options.every)
    except (InputError, MachineError) as e:
        return print_error(e)
    print_table(trials, sys.stdout)
    return 0 if all(trial.clean for trial in trials) else 1


def _tried(name: str, batches: Sequence[Batch], subject: str, every: int) -> Iterator[Trial]:
    try:
        progress = sys.stderr if sys.stderr.isatty() else None
        yield from try_all(name, batches, subjects=[subject], every=every, progress=progress)
    except UnsupportedError as e:
        print(f"{name} {subject}: skipped: {e.refusals[0].render()}")


if __name__ == "__main__":
    sys.exit(main())
