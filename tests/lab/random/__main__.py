"""Differences of every backend on random rulesets with random flows: ``python -m tests.lab.random SEEDS``.

Each seed makes a ruleset and a node for each family; every other node has random routing rules.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from backends.model.contract import Job
from harness.diff.backends import backend
from tests.lab.errors import print_error
from tests.lab.random.nodes import with_random_rules
from tests.lab.random.played import Played, expected_flows, node_of, random_job
from translate.errors import InputError, MachineError
from translate.ir import Family

_WAYS: Final = (
    ("iptables-legacy", 0),
    ("iptables-nft", 0),
    ("nftables", 0),
    ("nftables", 1),
    ("nftables", 2),
    ("tc-ebpf", 1),
)
"""The backends, with the level at which each translates."""


def main() -> int:
    """Print each difference, and the number of rulesets, flows and refusals; return 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.random", description=__doc__)
    parser.add_argument("seeds", metavar="A-B", type=_seeds, help="the first and the last seed")
    parser.add_argument("--family", type=Family, choices=list(Family), help="only this family")
    options = parser.parse_args()
    try:
        return _run(options.seeds, [options.family] if options.family else list(Family))
    except (InputError, MachineError) as e:
        return print_error(e)


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _run(seeds: Sequence[int], families: Sequence[Family]) -> int:
    rulesets = flows = differing = 0
    refused: Counter[str] = Counter()
    for seed, family, job in _jobs(seeds, families):
        expected = list(expected_flows(job, seed))
        played = Played([(seed, job, expected)])
        rulesets, flows = rulesets + 1, flows + len(expected)
        for name, level in _WAYS:
            differences, refusals = played.differences(backend(name), level)
            refused[name] += refusals
            differing += len(differences)
            for difference in differences:
                print(f"{family} {name} -O{level}: {difference}", flush=True)
    refusals_text = ", ".join(f"{name} {count}" for name, count in refused.items() if count) or "none"
    print(f"{rulesets} rulesets, {flows} flows: {differing} differences; refused: {refusals_text}")
    return int(differing > 0)


def _jobs(seeds: Sequence[int], families: Sequence[Family]) -> Iterator[tuple[int, Family, Job]]:
    for seed in seeds:
        for family in families:
            node = node_of(family)
            yield (
                seed,
                family,
                random_job(seed, family, node if seed % 2 else with_random_rules(node, family, seed)),
            )


if __name__ == "__main__":
    raise SystemExit(main())
