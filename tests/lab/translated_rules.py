"""Comparison of nfparity's and iptables-restore-translate's translations of single rules, with packets.

``python -m tests.lab.translated_rules`` makes a ruleset of each rule, with the jumps that lead to it and the
flows that reach it and narrowly miss it. A rule without a target drops what it matches. The simulator
computes the expected outcome of each flow; iptables-legacy agrees with it (``make diff-test``).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from backends.model.contract import Job
from backends.model.flow import Flow
from backends.nftables.backend import NftablesLoader
from backends.replay.session import open_session
from backends.simulator import SimulatorBackend
from harness.corpus.generate import generate_corpus
from harness.diff.compare import compare
from nfparity.inputs.batches import load_node
from nfparity.inputs.rules import load_rules
from tests.lab.errors import print_error
from tests.lab.translators import TRANSLATORS
from translate.errors import InputError, MachineError, UnsupportedError
from translate.ir import Drop, Goto, Jump, Rule, Ruleset, Spelled, Table, TableName

__all__ = ["Fate", "single_rules"]

RULES: Final = "tests/corpus/rulesets/every-option/ip.rules"
"""Every option that nfparity reads; relative to the project's root."""

NODE: Final = "tests/corpus/rulesets/kind-node/worker.json"
"""The node of the rules; relative to the project's root."""


class Fate(StrEnum):
    """The fate of one rule in one translation."""

    CORRECT = "correct"
    WRONG = "wrong"
    FAILS = "does not load"
    COMMENT = "a comment"
    REFUSED = "refused"
    UNTESTED = "no packets"
    """Its packets cannot be sent here."""


@dataclass(frozen=True, slots=True)
class Single:
    """A ruleset with a single rule, and its flows."""

    rule: Rule
    job: Job
    flows: tuple[Flow, ...]


def single_rules(ruleset: Ruleset) -> Iterator[tuple[Rule, Ruleset]]:
    """Yield each rule that is not a jump, in a ruleset with the jumps that lead to its chain."""
    for table in ruleset.tables:
        for chain in table.chains:
            for rule in chain.rules:
                if not _called(rule):
                    yield rule, replace(ruleset, tables=(_alone(table, chain.name, rule),))


def _called(rule: Rule) -> tuple[str, ...]:
    return tuple(action.chain for action in rule.actions if isinstance(action, Jump | Goto))


def _alone(table: Table, chain: str, rule: Rule) -> Table:
    """Return the table with one rule and the first jump to each chain on the way to it."""
    kept = {id(rule): _visible(rule) if table.name is not TableName.NAT else rule}
    wanted = [chain]
    for name in wanted:
        jumps = (r for c in table.chains for r in c.rules if name in _called(r) and c.name not in wanted)
        for jump in tuple(jumps)[:1]:
            kept[id(jump)] = jump
            wanted += [c.name for c in table.chains if any(r is jump for r in c.rules)]
    chains = (replace(c, rules=tuple(kept[id(r)] for r in c.rules if id(r) in kept)) for c in table.chains)
    return replace(table, chains=tuple(chains))


def _visible(rule: Rule) -> Rule:
    """Return the rule with a target by which packets show whether it matches."""
    if rule.actions or rule.target is not None:
        return rule
    return replace(rule, actions=(Drop(),), target=Spelled("DROP"))


def _fate(single: Single, translate: Callable[[Ruleset], tuple[str, int]]) -> Fate:
    try:
        text, _ = translate(single.job.ruleset)
    except UnsupportedError:
        return Fate.REFUSED
    if any(line.lstrip().startswith("# -A") for line in text.splitlines()):
        return Fate.COMMENT
    try:
        with (
            SimulatorBackend().open(single.job) as reference,
            open_session(single.job.node, NftablesLoader(text)) as kernel,
        ):
            wanted, observed = reference.replay(single.flows), kernel.replay(single.flows)
            differs = [compare(f, w, s) for f, w, s in zip(single.flows, wanted, observed, strict=True)]
    except UnsupportedError:
        return Fate.UNTESTED
    except MachineError as e:
        if "Error: " not in str(e):
            raise
        return Fate.FAILS
    return Fate.WRONG if any(differs) else Fate.CORRECT


def _singles(path: str, node: str | None) -> Iterator[Single]:
    whole = load_rules(path)
    for rule, ruleset in single_rules(whole):
        place = load_node(node, whole)
        job = Job(rules=ruleset, node=place)
        try:
            yield Single(rule, job, generate_corpus(job, seed=0, exhaustive=True).flows)
        except (InputError, UnsupportedError) as e:
            print(f"{rule.origin.place}: no flows: {str(e).splitlines()[0]}", file=sys.stderr)


def main() -> int:
    """Print the number of rules of each fate, and the rules that are wrong or fail, for each translator."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.translated_rules", description=__doc__)
    parser.add_argument("rules", metavar="RULES", nargs="*", default=[RULES], help=f"default: {RULES}")
    parser.add_argument("--node", metavar="FILE", default=NODE, help=f"default: {NODE}")
    options = parser.parse_args()
    names = ("iptables-restore-translate", "nfparity -O2")
    fates: dict[str, list[tuple[Fate, Rule]]] = {name: [] for name in names}
    try:
        for path in options.rules:
            for single in _singles(path, options.node):
                for name in names:
                    fates[name].append((_fate(single, TRANSLATORS[name]), single.rule))
    except (InputError, MachineError) as e:
        return print_error(e)
    _print(fates)
    return 0


def _print(fates: Mapping[str, Sequence[tuple[Fate, Rule]]]) -> None:
    print("| translator | " + " | ".join(Fate) + " |")
    print("| --- |" + " --- |" * len(Fate))
    for name, by_name in fates.items():
        counts = Counter(fate for fate, _ in by_name)
        print(f"| {name} | " + " | ".join(str(counts[fate]) for fate in Fate) + " |")
    for name, by_name in fates.items():
        for fate, rule in by_name:
            if fate in (Fate.WRONG, Fate.FAILS):
                print(f"{name}, {fate}: {rule.origin.text}")


if __name__ == "__main__":
    sys.exit(main())
