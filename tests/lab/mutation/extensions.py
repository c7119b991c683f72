"""Faults in every match and target by itself: ``python -m tests.lab.mutation.extensions``.

Each sample rule of an extension (:data:`tests.lab.options.SAMPLES`) becomes a ruleset of its own, with the
flows that ``corpus generate`` makes for it. A match decides between DROP and ACCEPT, so that every change of
its result is seen; a target keeps its action. So no other rule can hide a fault. The table has a row for each
extension; a fault that survives without a proof is printed with its rule.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from backends.model.contract import Job
from backends.simulator import SimulatorBackend
from harness.corpus.generate import generate_corpus
from harness.diff.batch import Batch
from nfparity.inputs.rules import load_rules
from tests.lab.bytecode.compiler import Nft, NftError
from tests.lab.mutation.extension_context import CONTEXT_LINE, surrounded
from tests.lab.mutation.extension_node import node_of
from tests.lab.mutation.extension_proofs import NEUTRAL, OUT_OF_REACH, Reason, reason_of
from tests.lab.mutation.fault import Fault
from tests.lab.mutation.flows import further_flows
from tests.lab.mutation.hunt import Caught, Verdict, hunt
from tests.lab.mutation.instructions import shown_by_bucket, shown_by_instructions
from tests.lab.mutation.neutral import proof_from_text
from tests.lab.mutation.nft_matches import EVERY_MATCH
from tests.lab.mutation.planter import NftPlanter
from tests.lab.mutation.testbed import Testbed
from tests.lab.mutation.trial import FEW, MANY
from tests.lab.mutation.workload import prepare
from tests.lab.options import SAMPLES
from translate.errors import InputError, MachineError, UnsupportedError
from translate.ir import (
    CLOCKS,
    Accept,
    CgroupTest,
    Chain,
    ConnectionLimit,
    ConnLabel,
    Drop,
    Duplicate,
    Field,
    FieldTest,
    FillChecksum,
    Hook,
    Nth,
    Policy,
    Queue,
    Random,
    Return,
    Rule,
    Ruleset,
    Secmark,
    SetUpdate,
    Spelled,
    Table,
    TableName,
    flat,
)
from translate.passes import lower

__all__ = ["Hunts", "Score", "Single", "faults_of", "singles", "tried"]

_OF_OBJECT: Final = re.compile(r"\s+(?:rate|until|over) ")
"""A line of a limit or a quota, which the proofs from the text do not read."""
_OF_CHAINS: Final = ("hook", "priority", "policy")
"""Operators that change the chain of a rule, whatever its extensions."""
MOST: Final = 96
"""The number of faults of one sample; of more, evenly spread ones are planted."""
_BUILT_IN: Final = frozenset(hook.value for hook in Hook)


@dataclass(frozen=True, slots=True)
class Single:
    """A ruleset with one sample rule of an extension (``-m limit``)."""

    extension: str
    ruleset: Ruleset

    @property
    def place(self) -> str:
        """The file and line of the sample."""
        return self.rule.origin.place

    @property
    def rule(self) -> Rule:
        """The sample."""
        return next(rule for rule in self.ruleset.rules() if rule.origin.line != CONTEXT_LINE)


@dataclass(slots=True)
class Score:
    """The faults of an extension, counted by their result, and those that no packet has shown.

    ``refused``: samples that nftables does not express; ``inert``: those that this kernel does not load.
    """

    faults: Counter[str] = field(default_factory=Counter)
    holes: list[tuple[str, Fault]] = field(default_factory=list)
    disproved: list[tuple[str, Fault]] = field(default_factory=list)
    """Faults that packets have shown although a proof excludes that."""
    reasons: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    inert: int = 0
    samples: int = 0

    @property
    def visible(self) -> int:
        """The number of faults that load and are not proven to change nothing."""
        return self.faults["caught"] + self.faults["instructions"] + len(self.holes)

    def count(
        self, single: Single, caught: Caught, proof: str | None, *, by_instructions: bool = False
    ) -> None:
        """Count a fault, for which there may be a proof that it changes nothing.

        ``by_instructions``: no packet has shown it, but nft's instructions do.
        """
        if by_instructions:
            self.faults["instructions"] += 1
            return
        if caught.verdict is Verdict.SURVIVED and proof is None:
            self.holes.append((single.place, caught.fault))
        if caught.verdict is Verdict.CAUGHT and proof is not None:
            self.disproved.append((single.place, caught.fault))
        if caught.verdict is Verdict.SURVIVED and proof is not None:
            self.faults["no change"] += 1
            self.reasons[proof] += 1
        else:
            self.faults[caught.verdict.value] += 1


def singles() -> Iterator[Single]:
    """Yield a ruleset for each extension of each sample rule, in the order of the files."""
    for path in SAMPLES:
        sample = load_rules(path)
        for table in sample.tables:
            for chain in table.chains:
                for rule in chain.rules:
                    yield from _of_rule(sample, table, chain, rule)


def _of_rule(sample: Ruleset, table: Table, chain: Chain, rule: Rule) -> Iterator[Single]:
    base = chain.name if chain.name in _BUILT_IN else Hook.FORWARD.value
    if rule.callee is not None or rule.unknown:
        return
    if rule.matches:
        decided = replace(rule, actions=(Drop(),), target=Spelled("DROP"))
        if any(isinstance(test, ConnLabel) and test.add for test in rule.tests):
            decided = replace(rule, actions=(), target=None)  # a connection that is dropped loses its label
        if any(isinstance(test, ConnectionLimit) and not test.above for test in rule.tests):
            decided = replace(rule, actions=(Accept(),), target=Spelled("ACCEPT"))  # others are never counted
        for name in dict.fromkeys(spelled.name for spelled in rule.matches):
            yield Single(f"-m {name}", _alone(sample, table, base, decided))
    by_itself = {spelled.name for spelled in rule.matches} <= _TRANSPORT
    verdict = isinstance(rule.actions[0], Accept | Drop | Return) if rule.actions else True
    changes = any(isinstance(test, SetUpdate) for test in rule.tests)
    if rule.target is not None and by_itself and (changes or not verdict):
        hook = (
            base
            if table.name.value != "nat" or chain.name in _BUILT_IN
            else _NAT.get(chain.name, "PREROUTING")
        )
        yield Single(f"-j {rule.target.name}", _alone(sample, table, hook, rule))


_TRANSPORT: Final = frozenset({"tcp", "udp", "sctp"})
"""A sample is one of its target if it has no other matches than these; otherwise it is one of its matches."""
_NAT: Final = {"to": "PREROUTING", "from": "POSTROUTING"}
"""The hooks from which the chains of the samples' table nat are called."""


def _alone(sample: Ruleset, table: Table, chain: str, rule: Rule) -> Ruleset:
    name = "" if rule.target is None else rule.target.name
    if name == "CONNMARK" and table.name is TableName.RAW:
        table = replace(table, name=TableName.MANGLE)  # no packet has a connection in raw
    if {test.field for test in flat(rule.tests) if isinstance(test, FieldTest)} & {Field.MARK}:
        chain = Hook.OUTPUT.value  # only the node's own packets come with a mark
    if any(isinstance(test, FieldTest) and test.field in _OF_FRAGMENTS for test in flat(rule.tests)):
        chain = Hook.FORWARD.value  # the node drops a single fragment, whatever INPUT decides
    rules = surrounded(rule, sample.family)
    chains = (Chain(name=chain, hook=Hook(chain), policy=Policy.ACCEPT, rules=rules),)
    return replace(sample, tables=(replace(table, chains=chains),), unknown=(), notes=())


_OF_FRAGMENTS: Final = frozenset(field for field in Field if field.text.startswith("fragment."))


def faults_of(ruleset: Ruleset, *, level: int = 0) -> tuple[NftPlanter, tuple[Fault, ...]]:
    """Return the planter of a translation and its faults. Raises UnsupportedError if there is none."""
    planter = NftPlanter(lower(ruleset, level=level), EVERY_MATCH)
    faults = [
        fault
        for fault in planter.faults
        if fault.operator not in _OF_CHAINS and f'"line {CONTEXT_LINE}"' not in fault.place.text
    ]
    every = -(-len(faults) // MOST)
    return planter, tuple(faults[:: max(every, 1)])


def tried(single: Single, score: Score, *, level: int = 0, hunts: Hunts | None = None) -> None:
    """Plant the faults of a sample and count the results.

    ``hunts`` has the results of earlier samples: a rule with two matches is one of both. Raises MachineError
    if packets show a difference without a fault.
    """
    score.samples += 1
    try:
        planter, faults = faults_of(single.ruleset, level=level)
        batch = None if _is_unseen(single.rule) else _batch(single)
    except UnsupportedError:
        score.refused += 1
        return
    known = {} if hunts is None else hunts
    flows = () if batch is None else tuple(flow.steps for flow in batch.flows)
    key = single.place, planter.text, hash(flows)
    if key not in known:
        known[key] = _loaded(planter, faults) if batch is None else _hunted(single, planter, faults, batch)
    if known[key] is None:
        score.inert += 1
        return
    for caught in known[key] or ():
        _judge(single, score, planter, caught, level)


Hunts = dict[tuple[object, ...], tuple[Caught, ...] | None]
"""The results of faults by the sample's place, the text that they are planted in, and a hash of the flows."""


def _is_unseen(rule: Rule) -> bool:
    """Return whether no flow can show what a rule does, so that only nft's instructions may."""
    if any(isinstance(test, FieldTest) and test.field in CLOCKS for test in flat(rule.tests)):
        return True
    if any(isinstance(test, CgroupTest) for test in rule.tests):
        return True
    return any(isinstance(action, Duplicate | FillChecksum | Secmark | Queue) for action in rule.actions)


def _hunted(single: Single, planter: NftPlanter, faults: Sequence[Fault], batch: Batch) -> tuple[Caught, ...]:
    """Plant the faults on a node and send the flows."""
    statistic = any(isinstance(test, Nth | Random) for test in single.rule.tests)
    workloads = prepare([batch], SimulatorBackend(), few=FEW, many=MANY if statistic else FEW)
    with Testbed(planter, workloads) as testbed:
        if flaw := testbed.first_difference(None):
            raise MachineError(f"{single.place}: differs without any fault: {flaw}")
        results = tuple(hunt(faults, testbed))
        if flaw := testbed.first_difference(None):
            raise MachineError(f"{single.place}: differs when all faults are gone: {flaw}")
    return results


def _loaded(planter: NftPlanter, faults: Sequence[Fault]) -> tuple[Caught, ...] | None:
    """Load the faults without a packet; return None if this kernel does not load the rule as it is."""
    nft = Nft("nft")
    try:
        nft.load(planter.text)
    except NftError:
        return None
    return tuple(_load(nft, planter, fault) for fault in faults)


def _load(nft: Nft, planter: NftPlanter, fault: Fault) -> Caught:
    try:
        nft.load(fault.plant(planter.text))
    except NftError as e:
        return Caught(fault=fault, verdict=Verdict.REFUSED, by=str(e).split("\n")[0])
    return Caught(fault=fault, verdict=Verdict.SURVIVED, by="")


def _judge(single: Single, score: Score, planter: NftPlanter, caught: Caught, level: int) -> None:
    """Count a result; a fault that survived without a proof is judged by nft's instructions."""
    proof = _proof(single, planter, caught)
    if caught.verdict is not Verdict.SURVIVED or proof is not None:
        score.count(single, caught, proof)
        return
    shown = shown_by_bucket([single.rule], caught.fault) or shown_by_instructions(
        lower(single.ruleset, level=level), caught.fault
    )
    if shown is None and (unseen := _reason(OUT_OF_REACH, single, caught.fault)):
        score.faults["out of reach"] += 1
        score.reasons[unseen] += 1
    else:
        score.count(single, caught, None, by_instructions=shown is not None)


def _reason(reasons: tuple[Reason, ...], single: Single, fault: Fault) -> str | None:
    return reason_of(reasons, single.extension, fault, single.rule.origin.text)


def _proof(single: Single, planter: NftPlanter, caught: Caught) -> str | None:
    """Return the reason why a fault changes nothing; from its text only if no packet has shown it."""
    fault = caught.fault
    if known := _reason(NEUTRAL, single, fault):
        return known
    if caught.verdict is not Verdict.SURVIVED:
        return None
    if not _OF_OBJECT.match(fault.place.text) and (reason := planter.unchanged(fault)):
        return reason
    return proof_from_text(planter.text, fault)


def _batch(single: Single) -> Batch:
    node = node_of(single.ruleset)
    job = Job(rules=single.ruleset, node=node)
    generated = generate_corpus(job, seed=0).flows
    flows = (*generated, *further_flows(single.extension, single.ruleset, node, generated))
    return Batch(rules_path=single.place, rules=single.ruleset, node=node, flows=flows, corpus=None)


def main() -> int:
    """Print the table; return 1 if a fault is not caught, a proof is wrong, or a sample fails without one."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.mutation.extensions", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="this extension, such as limit")
    parser.add_argument(
        "--place", action="append", metavar="FILE:LINE", help="only this sample, such as ip6.rules:115"
    )
    parser.add_argument("--level", type=int, choices=(0, 1, 2), default=0, help="of the translation")
    parser.add_argument("--list", action="store_true", help="print the faults, and plant none")
    options = parser.parse_args()
    scores: dict[str, Score] = {}
    hunts: Hunts = {}
    failed = False
    for single in singles():
        if options.only and single.extension[3:] not in options.only:
            continue
        if options.place and not any(single.place.endswith(f"/{place}") for place in options.place):
            continue
        score = scores.setdefault(single.extension, Score())
        if options.list:
            _listed(single, options.level)
            continue
        holes, disproved = len(score.holes), len(score.disproved)
        try:
            tried(single, score, level=options.level, hunts=hunts)
        except (InputError, MachineError) as e:
            failed = True
            print(f"FAILED {single.place} {single.extension}: {e}", flush=True)
        for place, fault in score.holes[holes:]:
            print(f"NOT CAUGHT  {place}  {fault.key}", flush=True)
        for place, fault in score.disproved[disproved:]:
            print(f"DISPROVED  {place}  {fault.key}", flush=True)
    if options.list:
        return 0
    _print(scores)
    return int(failed or any(score.holes or score.disproved for score in scores.values()))


def _listed(single: Single, level: int) -> None:
    try:
        _, faults = faults_of(single.ruleset, level=level)
    except UnsupportedError as e:
        print(f"{single.extension} {single.place}: refused: {e.refusals[0].feature}")
        return
    print(f"{single.extension} {single.place}: {len(faults)} faults")
    for fault in faults:
        print(f"  {fault.key}")


def _print(scores: Mapping[str, Score]) -> None:
    print(
        "| extension | samples | faults | rejected | neutral | out of reach"
        " | by packets | by instructions | shown |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, score in sorted(scores.items()):
        counts = score.faults
        shown = counts["caught"] + counts["instructions"]
        detected = f"{shown} of {score.visible}" if score.visible else "-"
        print(
            f"| `{name}` | {score.samples} | {counts.total()} | {counts['refused']} | {counts['no change']}"
            f" | {counts['out of reach']} | {counts['caught']} | {counts['instructions']} | {detected} |"
        )


if __name__ == "__main__":
    sys.exit(main())
