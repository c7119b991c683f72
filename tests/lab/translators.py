"""Comparison of nfparity's and iptables-restore-translate's translations: loading, and outcomes of packets.

``python -m tests.lab.translators`` prints the first table of docs/translators.md. Each tool translates the
same rules; the result is loaded into a private namespace by the nft of the tool's release, and the corpus is
replayed against the simulator. Where nft refuses a whole file, each of its tables is also tried by itself,
against the simulator with that table alone.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from backends.model.contract import Job
from backends.nftables.backend import NftablesLoader
from backends.replay.loader import Loader
from backends.replay.session import open_session
from backends.simulator import SimulatorBackend
from harness.diff.batch import Batch
from harness.diff.compare import compare
from nfparity.inputs.batches import load_batches
from tests.lab.commandloader import CommandLoader
from tests.lab.errors import print_error
from translate.errors import InputError, MachineError
from translate.ir import Family, Ruleset, TableName
from translate.nft import emit
from translate.passes import lower
from translate.write import write_ipsets, write_save
from vm.nft import ensure_nft
from vm.translator import ensure_translator

__all__ = ["Result", "Translator", "compare_translators", "translators"]


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


@dataclass(frozen=True, slots=True)
class Translator:
    """A translator: ``translate`` returns the text and the exit status of the tool."""

    name: str
    translate: Callable[[Ruleset], tuple[str, int]]
    nft: tuple[str, ...] = ()
    """The command that loads its text; empty for libnftables of this machine."""

    def loader(self, text: str, family: Family) -> Loader:
        """Return the loader of a translated text."""
        return CommandLoader(self.nft, text, family) if self.nft else NftablesLoader(text, family)


def _debian(release: str, number: int) -> Translator:
    """Return the translator of a Debian release, with its nft."""
    build = Path("build")
    commands = {family: ensure_translator(release, family, build=build, say=_say) for family in Family}

    def translate(ruleset: Ruleset) -> tuple[str, int]:
        # It asks the kernel for ipsets, and it reads no standard input: "missing file name".
        with tempfile.TemporaryDirectory() as folder:
            rules, sets = Path(folder, "rules"), Path(folder, "sets")
            rules.write_text(write_save(ruleset))
            sets.write_text(write_ipsets(ruleset.sets) if ruleset.sets else "")
            script = 'test ! -s "$0" || ipset restore -f "$0"; exec "$@"'
            done = subprocess.run(
                ("unshare", "-n", "sh", "-c", script, sets, *commands[ruleset.family], "-f", rules),
                capture_output=True,
                text=True,
                check=False,
            )
        return done.stdout, done.returncode

    nft = ensure_nft(release, build=build, say=_say)
    return Translator(
        f"iptables-restore-translate of Debian {number}", translate, () if nft == ("nft",) else nft
    )


def _ours(level: int) -> Translator:
    return Translator(f"nfparity -O{level}", lambda ruleset: (emit(lower(ruleset, level=level)).text, 0))


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def translators(levels: Sequence[int]) -> tuple[Translator, ...]:
    """Return the translators of both Debian releases and nfparity at these levels.

    Raises MachineError if a release's packages cannot be fetched.
    """
    return (_debian("bookworm", 12), _debian("trixie", 13), *map(_ours, levels))


def compare_translators(batches: Sequence[Batch]) -> Iterator[Result]:
    """Yield the results of every translator for all tables together and, if they do not load, for each
    table.
    """
    names = [table.name for table in batches[0].ruleset.tables]
    for translator in translators((0, 1, 2)):
        whole = _try(translator, batches, names)
        yield whole
        if whole.refused:
            for which in names:
                yield _try(translator, batches, [which])


def _try(translator: Translator, batches: Sequence[Batch], tables: Sequence[TableName]) -> Result:
    flows = 0
    status = 0
    different: list[str] = []
    for batch in batches:
        kept = tuple(table for table in batch.ruleset.tables if table.name in tables)
        ruleset = replace(batch.ruleset, tables=kept)
        text, status = translator.translate(ruleset)
        job = Job(rules=ruleset, node=batch.node)
        flows += len(batch.flows)
        try:
            with (
                SimulatorBackend().open(job) as reference,
                open_session(batch.node, translator.loader(text, ruleset.family)) as kernel,
            ):
                wanted = reference.replay(batch.flows)
                for flow, want, result in zip(batch.flows, wanted, kernel.replay(batch.flows), strict=True):
                    if compare(flow, want, result):
                        different.append(flow.id)
        except MachineError as e:
            refused = len(re.findall(r"\bError: ", str(e)))
            if not refused:
                raise
            return Result(translator=translator.name, tables=_listed(tables), status=status, refused=refused)
    return Result(
        translator=translator.name,
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
