"""Plant every fault and print the table: ``python -m harness.mutation``."""

from __future__ import annotations

import argparse
import sys

from harness.mutation.table import print_table
from harness.mutation.trial import SUBJECTS, try_all
from translate.errors import InputError, MachineError


def main() -> int:
    """Print the table; 0 when every fault was caught, refused or is proven to change nothing."""
    parser = argparse.ArgumentParser(prog="python -m harness.mutation", description=__doc__)
    parser.add_argument("--corpus", default="tests/corpus/cases", metavar="DIR", help="cases to replay")
    parser.add_argument("--only", default="kind-", metavar="PREFIX", help="which cases; default: kind-")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="plant only every Nth fault")
    parser.add_argument("--subjects", default=",".join(SUBJECTS), help=f"of {', '.join(SUBJECTS)}")
    given = parser.parse_args()
    try:
        trials = try_all(
            given.corpus,
            prefix=given.only,
            subjects=given.subjects.split(","),
            every=given.every,
            progress=sys.stderr if sys.stderr.isatty() else None,
        )
    except (InputError, MachineError) as e:
        print(f"nfparity: {e}", file=sys.stderr)
        return 2 if isinstance(e, InputError) else 3
    print_table(trials, sys.stdout)
    return 0 if all(trial.clean for trial in trials) else 1


if __name__ == "__main__":
    sys.exit(main())
