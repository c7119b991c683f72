"""Comparison of nfparity's and iptables-restore-translate's translations: loading, and outcomes of packets.

``python -m tests.lab.translators`` prints the table of docs/testing.md. Each tool translates the same rules;
the result is loaded by libnftables into a private namespace, and the corpus is replayed against the
simulator. Where nft refuses a whole file, each of its tables is also tried by itself, against
the simulator with that table alone.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from backends.model.contract import Job
from backends.nftables.backend import NftablesLoader
from backends.replay.session import open_session
from backends.simulator import SimulatorBackend
from backends.testbed.command import find_tool
from harness.diff.batch import Batch
from harness.diff.compare import compare
from nfparity.inputs.batches import load_batches
from tests.lab.errors import print_error
from translate.errors import InputError, MachineError
from translate.ir import Ruleset, TableName
from translate.nft import emit
from translate.passes import lower
from translate.write import write_save

__all__ = ["TRANSLATORS", "Result", "compare_translators"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one translation of some tables. ``refused`` counts nft's errors; 0: it loaded."""

    translator: str
    tables: str
    status: int
    refused: int
    flows: int = 0
    different: tuple[str, ...] = ()

    def row(self) -> str:
        """Return the result as a row of a Markdown table."""
        loads = "yes" if not self.refused else f"no, {self.refused} errors"
        flows = "-" if self.refused else f"{len(self.different)} of {self.flows}"
        return f"| {self.translator} | {self.tables} | {self.status} | {loads} | {flows} |"


def _xlate(ruleset: Ruleset) -> tuple[str, int]:
    tool = find_tool("iptables-restore-translate")
    if tool is None:
        raise MachineError("iptables-restore-translate is not installed (Debian package iptables)")
    # It reads no standard input: "missing file name".
    done = subprocess.run(
        (tool, "-f", "/dev/stdin"), input=write_save(ruleset), capture_output=True, text=True, check=False
    )
    return done.stdout, done.returncode


def _ours(level: int) -> Callable[[Ruleset], tuple[str, int]]:
    return lambda ruleset: (emit(lower(ruleset, level=level)).text, 0)


TRANSLATORS: dict[str, Callable[[Ruleset], tuple[str, int]]] = {
    "iptables-restore-translate": _xlate,
    "nfparity -O0": _ours(0),
    "nfparity -O1": _ours(1),
    "nfparity -O2": _ours(2),
}


def compare_translators(batches: Sequence[Batch]) -> Iterator[Result]:
    """Yield the results of every translator for all tables together and, if they do not load, for each
    table.
    """
    names = [table.name for table in batches[0].ruleset.tables]
    for name, translate in TRANSLATORS.items():
        whole = _try(name, translate, batches, names)
        yield whole
        if whole.refused:
            for which in names:
                yield _try(name, translate, batches, [which])


def _try(
    name: str,
    translate: Callable[[Ruleset], tuple[str, int]],
    batches: Sequence[Batch],
    tables: Sequence[TableName],
) -> Result:
    flows = 0
    status = 0
    different: list[str] = []
    for batch in batches:
        kept = tuple(table for table in batch.ruleset.tables if table.name in tables)
        ruleset = replace(batch.ruleset, tables=kept)
        text, status = translate(ruleset)
        job = Job(rules=ruleset, node=batch.node)
        flows += len(batch.flows)
        try:
            with (
                SimulatorBackend().open(job) as reference,
                open_session(batch.node, NftablesLoader(text)) as kernel,
            ):
                wanted = reference.replay(batch.flows)
                for flow, want, result in zip(batch.flows, wanted, kernel.replay(batch.flows), strict=True):
                    if compare(flow, want, result):
                        different.append(flow.id)
        except MachineError as e:
            refused = len(re.findall(r"\bError: ", str(e)))
            if not refused:
                raise
            return Result(translator=name, tables=_listed(tables), status=status, refused=refused)
    return Result(
        translator=name,
        tables=_listed(tables),
        status=status,
        refused=0,
        flows=flows,
        different=tuple(different),
    )


def _listed(tables: Sequence[TableName]) -> str:
    return ", ".join(table.value for table in tables)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.translators", description=__doc__)
    parser.add_argument("--corpus", default="tests/corpus/cases", help="folder of cases")
    parser.add_argument(
        "--only", default="kind-", metavar="PREFIX", help="the prefix of the cases' names; default: kind-"
    )
    options = parser.parse_args()
    try:
        batches = [
            replace(batch, flows=flows)
            for batch in load_batches(rules=None, corpus=options.corpus, node=None)
            if (flows := tuple(f for f in batch.flows if f.id.startswith(options.only)))
        ]
        print("| translator | tables | exit status | loads | flows treated differently |")
        print("| --- | --- | --- | --- | --- |")
        results = list(compare_translators(batches))
    except (InputError, MachineError) as e:
        return print_error(e)
    for result in results:
        print(result.row())
    for result in results:
        for flow in result.different:
            print(f"{result.translator}, {result.tables}: {flow}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
