"""Comparison of given or random rulesets with nft's instructions for their translations."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence

from nfparity.inputs.rules import load_rules
from tests.lab.bytecode.check import check
from tests.lab.bytecode.compiler import Nft, NftError
from tests.lab.bytecode.expressible import expressible
from tests.lab.errors import print_error
from tests.lab.random.matches import matching_rules
from tests.lab.random.rules import random_rules
from translate.errors import InputError, MachineError
from translate.ir import Family, Ruleset
from translate.passes import LEVELS, lower
from translate.read import read_ruleset


def main() -> int:
    """Print the differences, nft's refusals, and the numbers of checks; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.bytecode", description=__doc__)
    parser.add_argument("rules", metavar="RULES", nargs="*", help="files of rules")
    parser.add_argument("--seeds", metavar="A-B", help="random rulesets with these seeds")
    parser.add_argument(
        "--nft",
        metavar="COMMAND",
        action="append",
        help="the command that starts an nft (may be repeated; default: nft); python -m vm.nft prints the"
        " command of a release",
    )
    options = parser.parse_args()
    try:
        compilers = [_named(shlex.split(command)) for command in options.nft or ["nft"]]
        return _run(_rulesets(options.rules, options.seeds), compilers)
    except (InputError, MachineError) as e:
        return print_error(e)


def _named(command: Sequence[str]) -> Nft:
    """Return the nft that a command starts, with its version."""
    version = Nft("nft", tuple(command)).version()
    print(version)
    return Nft(version.partition(" (")[0], tuple(command))


def _rulesets(paths: Sequence[str], seeds: str | None) -> Iterator[Ruleset]:
    yield from map(load_rules, paths)
    if seeds is not None:
        first, _, last = seeds.partition("-")
        for seed in range(int(first), int(last or first) + 1):
            yield read_ruleset(random_rules(seed).encode(), name=f"seed {seed}")
            for family in Family:
                yield matching_rules(seed, family)


def _run(rulesets: Iterator[Ruleset], compilers: Sequence[Nft]) -> int:
    checked_rulesets = statements = packets = refused = differing = 0
    for ruleset in rulesets:
        checked_rulesets += 1
        programs = [lower(ruleset, level=level) for level in LEVELS]
        try:
            checked = check(programs, compilers)
            for program in programs:
                text = expressible(program)[1].text
                for nft in compilers:
                    nft.load(text)
        except NftError as e:
            differing += 1
            print(f"{ruleset.source}: {e}", flush=True)
            continue
        statements += checked.statements
        packets += checked.packets
        refused += len(checked.refused)
        differing += bool(checked.differences)
        for difference in checked.differences:
            print(difference.render(), flush=True)
    print(
        f"{checked_rulesets} rulesets at {len(LEVELS)} levels: {statements} statements, {packets} packets,"
        f" {refused} statements refused; {differing} rulesets differ"
    )
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
