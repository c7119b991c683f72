"""Differences of every backend on random rulesets with random flows: ``python -m tests.lab.random SEEDS``.

Each seed makes a ruleset and a node for each family; every other node has random routing rules. With
``--stateful``, the rules have several tests that count, draw or remember. With ``--segments``, the rules are
marks for what conntrack says, and the flows are random segments of TCP connections; every other node has
random settings of conntrack.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from typing import Final

from harness.diff.backends import backend
from tests.lab.errors import print_error
from tests.lab.random.nodes import with_random_rules
from tests.lab.random.played import Played, expected_flows, node_of, random_job
from tests.lab.random.segments import played_segments
from tests.lab.random.visits import played_visits
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
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--stateful", action="store_true", help="rules of tests.lab.random.stateful")
    kinds.add_argument("--segments", action="store_true", help="flows of tests.lab.random.segments")
    options = parser.parse_args()
    try:
        kind = played_visits if options.stateful else played_segments if options.segments else _one_for_all
        return _run(options.seeds, [options.family] if options.family else list(Family), kind)
    except (InputError, MachineError) as e:
        return print_error(e)


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _run(
    seeds: Sequence[int], families: Sequence[Family], kind: Callable[[int, Family], dict[str, Played]]
) -> int:
    rulesets = flows = differing = 0
    refused: Counter[str] = Counter()
    for seed, family in product(seeds, families):
        played = kind(seed, family)
        rulesets += 1
        flows += max(len(expected) for each in played.values() for _, _, expected in each.jobs)
        for name, level in _WAYS:
            if name not in played:
                continue
            differences, refusals = played[name].differences(backend(name), level)
            refused[name] += refusals
            differing += len(differences)
            for difference in differences:
                print(f"{family} {name} -O{level}: {difference}", flush=True)
    refusals_text = ", ".join(f"{name} {count}" for name, count in refused.items() if count) or "none"
    print(f"{rulesets} rulesets, {flows} flows: {differing} differences; refused: {refusals_text}")
    return int(differing > 0)


def _one_for_all(seed: int, family: Family) -> dict[str, Played]:
    """Return the random ruleset of a seed with its flows, the same for each backend."""
    node = node_of(family)
    job = random_job(seed, family, node if seed % 2 else with_random_rules(node, family, seed))
    played = Played([(seed, job, list(expected_flows(job, seed)))])
    return {name: played for name, _ in _WAYS}


if __name__ == "__main__":
    raise SystemExit(main())
