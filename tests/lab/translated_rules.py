"""Comparison of nfparity's and iptables-restore-translate's translations of single rules, with packets.

``python -m tests.lab.translated_rules`` makes a ruleset of each rule, with the jumps that lead to it and the
flows that reach it and narrowly miss it. A rule without a target drops what it matches. The simulator
computes the expected outcome of each flow; iptables-legacy agrees with it (``make diff-test``). For a match
or target that is not modelled, iptables-legacy itself gives the expected outcome.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from backends.iptables.backend import loader_of
from backends.model.contract import Job
from backends.model.flow import Flow
from backends.model.outcome import FlowResult
from backends.replay.session import open_session
from backends.simulator import SimulatorBackend
from harness.corpus.generate import generate_corpus
from harness.diff.compare import compare
from nfparity.inputs.batches import load_node
from nfparity.inputs.rules import load_rules
from tests.lab.errors import print_error
from tests.lab.options import SAMPLES
from tests.lab.translators import Translator, translators
from translate.errors import InputError, MachineError, UnsupportedError
from translate.ir import (
    CLOCKS,
    Drop,
    Duplicate,
    Family,
    FieldTest,
    Goto,
    Jump,
    Rule,
    Ruleset,
    Spelled,
    Table,
    TableName,
    flat,
)

__all__ = ["Fate", "by_extension", "single_rules", "summary"]

RULES: Final = (
    *(path for path in SAMPLES if "queue" not in path),
    "tests/corpus/rulesets/other-extensions/ip.rules",
    "tests/corpus/rulesets/other-extensions/ip6.rules",
)
"""Every option of every extension; relative to the project's root. NFQUEUE is left out, because nftables
loads it only on a kernel with nft_queue."""

NODES: Final = {
    Family.IP: "tests/corpus/rulesets/kind-node/worker.json",
    Family.IP6: "tests/corpus/rulesets/six/node.json",
}
"""The nodes of the rules; relative to the project's root."""

_COMMENT: Final = re.compile(r"^\s*# (?:-t \S+ )?-A ", re.MULTILINE)
"""A rule that iptables-restore-translate leaves out."""


_VERDICTS: Final = ("ACCEPT", "DROP", "RETURN")
"""Targets that show whether a match holds."""


class Fate(StrEnum):
    """The fate of one rule in one translation."""

    CORRECT = "correct"
    WRONG = "wrong"
    FAILS = "does not load"
    COMMENT = "a comment"
    REFUSED = "refused"
    UNTESTED = "no packets"
    """No packet that can be sent here shows whether it is correct, or no kernel of the run takes the rule."""


@dataclass(frozen=True, slots=True)
class Single:
    """A ruleset with a single rule, its flows, and the results that iptables has for them.

    ``wanted`` is None if no packet that can be sent here shows the rule.
    """

    rule: Rule
    job: Job
    flows: tuple[Flow, ...]
    wanted: tuple[FlowResult, ...] | None


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


def _fate(single: Single, translator: Translator) -> Fate:
    try:
        text, status = translator.translate(single.job.ruleset)
    except UnsupportedError:
        return Fate.REFUSED
    if status:
        return Fate.REFUSED
    if _COMMENT.search(text):
        return Fate.COMMENT
    loader = translator.loader(text, single.job.ruleset.family)
    try:
        with open_session(single.job.node, loader) as kernel:
            if single.wanted is None:
                return Fate.UNTESTED
            results = zip(single.flows, single.wanted, kernel.replay(single.flows), strict=True)
            differs = [_differs(flow, wanted, observed) for flow, wanted, observed in results]
    except UnsupportedError:
        return Fate.UNTESTED
    except MachineError as e:
        if "Error: " not in str(e):
            raise
        return Fate.FAILS if _is_taken(single.job) else Fate.UNTESTED
    return Fate.WRONG if any(differs) else Fate.CORRECT


def _is_taken(job: Job) -> bool:
    """Return whether iptables itself loads the rule here: SECMARK needs SELinux, a path its cgroup."""
    try:
        with open_session(job.node, loader_of("iptables-legacy", job.ruleset)):
            return True
    except MachineError:
        return False


def _differs(flow: Flow, wanted: FlowResult, observed: FlowResult) -> bool:
    """Return whether a result is another one; a copy of the packet may leave the node in both."""
    if observed.notes == wanted.notes:
        observed = replace(observed, notes=())
    return bool(compare(flow, wanted, observed))


def _singles(path: str, node: str | None) -> Iterator[Single]:
    whole = load_rules(path)
    for rule, ruleset in single_rules(whole):
        place = load_node(node or NODES[whole.family], whole)
        job = Job(rules=ruleset, node=place)
        try:
            flows = generate_corpus(job, seed=0).flows
            wanted = _wanted(job, rule, flows)
        except (InputError, UnsupportedError, MachineError) as e:
            print(f"{rule.origin.place}: no flows: {str(e).splitlines()[0]}", file=sys.stderr)
            flows, wanted = (), None
        yield Single(rule, job, flows, wanted)


def _wanted(job: Job, rule: Rule, flows: Sequence[Flow]) -> tuple[FlowResult, ...] | None:
    """Return the results of the simulator, or those of iptables-legacy for what the simulator does not know.

    These are rules that are not modelled, and copies of packets.

    Return None if no packet matches a rule that is not modelled, and for a rule that reads the clock, which
    no packet sets.
    """
    if any(isinstance(test, FieldTest) and test.field in CLOCKS for test in flat(rule.tests)):
        return None
    if rule.unknown or any(isinstance(action, Duplicate) for action in rule.actions):
        with open_session(job.node, loader_of("iptables-legacy", job.ruleset)) as legacy:
            results = tuple(legacy.replay(flows))
            counted = legacy.counters()
        places = (
            (table.name.value, chain.name, index)
            for table in job.ruleset.tables
            for chain in table.chains
            for index, each in enumerate(chain.rules)
            if each.origin == rule.origin
        )
        return results if any(counted.get(place) for place in places) else None
    with SimulatorBackend().open(job) as reference:
        return tuple(reference.replay(flows))


def main() -> int:
    """Print the number of rules of each fate for each translator, and for each match and target."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.translated_rules", description=__doc__)
    parser.add_argument("rules", metavar="RULES", nargs="*", default=RULES, help="default: every option")
    parser.add_argument("--node", metavar="FILE", help="default: a node of the rules' family")
    options = parser.parse_args()
    try:
        compared = translators((2,))
        fates: dict[str, list[tuple[Fate, Rule]]] = {translator.name: [] for translator in compared}
        for path in options.rules:
            for single in _singles(path, options.node):
                for translator in compared:
                    fate = _fate(single, translator)
                    fates[translator.name].append((fate, single.rule))
                    if fate in (Fate.WRONG, Fate.FAILS, Fate.UNTESTED):
                        print(f"{translator.name}, {fate}: {_spelled(single.rule)}", flush=True)
    except (InputError, MachineError) as e:
        return print_error(e)
    print(summary(fates))
    print(by_extension(fates))
    return 0


def _spelled(rule: Rule) -> str:
    return f"{rule.origin.place}: {rule.origin.text}"


def summary(fates: Mapping[str, Sequence[tuple[Fate, Rule]]]) -> str:
    """Return a table with the number of rules of each fate."""
    lines = ["| translator | " + " | ".join(Fate) + " |", "| --- |" + " --- |" * len(Fate)]
    for name, by_name in fates.items():
        counts = Counter(fate for fate, _ in by_name)
        lines.append(f"| {name} | " + " | ".join(str(counts[fate]) for fate in Fate) + " |")
    return "\n".join(lines) + "\n"


def by_extension(fates: Mapping[str, Sequence[tuple[Fate, Rule]]]) -> str:
    """Return a table with the correct rules of each match and target, and the fates of the others."""
    counts: dict[str, dict[str, Counter[Fate]]] = {}
    for name, by_name in fates.items():
        for fate, rule in by_name:
            for extension in _extensions(rule):
                counts.setdefault(extension, {}).setdefault(name, Counter())[fate] += 1
    lines = [
        "| match or target | rules | " + " | ".join(fates) + " |",
        "| --- |" + " --- |" * (len(fates) + 1),
    ]
    for extension, by_translator in sorted(counts.items()):
        rules = next(iter(by_translator.values())).total()
        cells = " | ".join(_cell(by_translator[name]) for name in fates)
        lines.append(f"| `{extension}` | {rules} | {cells} |")
    return "\n".join(lines) + "\n"


def _extensions(rule: Rule) -> Iterator[str]:
    yield from dict.fromkeys(f"-m {match.name}" for match in rule.matches)
    if rule.target is not None and not (rule.matches and rule.target.name in _VERDICTS):
        yield f"-j {rule.target.name}"


def _cell(counts: Counter[Fate]) -> str:
    return ", ".join(f"{counts[fate]} {fate}" for fate in Fate if counts[fate])


if __name__ == "__main__":
    sys.exit(main())
