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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from backends.model.contract import Job
from backends.model.flow import Flow, Send
from backends.model.packet import Fragment
from backends.model.withfields import with_fields
from backends.simulator import SimulatorBackend
from backends.wire.frames import build
from harness.corpus.generate import generate_corpus
from harness.diff.batch import Batch
from nfparity.inputs.batches import load_node
from nfparity.inputs.rules import load_rules
from tests.lab.mutation.fault import Fault
from tests.lab.mutation.hunt import Verdict, hunt
from tests.lab.mutation.nft_matches import EVERY_MATCH
from tests.lab.mutation.planter import NftPlanter
from tests.lab.mutation.testbed import Testbed
from tests.lab.mutation.workload import prepare
from tests.lab.options import SAMPLES
from translate.errors import InputError, MachineError, UnsupportedError
from translate.ir import (
    CLOCKS,
    Accept,
    Chain,
    Drop,
    Family,
    Field,
    FieldTest,
    Hook,
    Origin,
    Policy,
    Protocol,
    Return,
    Rule,
    Ruleset,
    SideEffect,
    Spelled,
    Table,
    TableName,
    TcpFlag,
    flat,
)
from translate.passes import lower
from translate.read import read_ruleset

__all__ = ["Score", "Single", "faults_of", "singles", "tried"]

_NODES: Final = {
    Family.IP: "tests/corpus/rulesets/every-construct/node.json",
    Family.IP6: "tests/corpus/rulesets/six/node.json",
}
_OF_OBJECT: Final = re.compile(r"\s+(?:rate|until|over) ")
"""A line of a limit or a quota, which the proofs from the text do not read."""
_FEW: Final = 24
"""The repetitions of a flow with a random outcome."""
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
        return next(rule for rule in self.ruleset.rules() if rule.origin.line != _CONTEXT)


@dataclass(slots=True)
class Score:
    """The faults of an extension, counted by their result, and those that no packet has shown.

    ``refused``: samples that nftables does not express; ``inert``: those that only log or count, and
    those that read the clock, which no packet sets on a kernel.
    """

    faults: Counter[str] = field(default_factory=Counter)
    holes: list[tuple[str, Fault]] = field(default_factory=list)
    refused: int = 0
    inert: int = 0
    samples: int = 0

    @property
    def visible(self) -> int:
        """The number of faults that load and are not proven to change nothing."""
        return self.faults["caught"] + len(self.holes)


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
        for name in dict.fromkeys(spelled.name for spelled in rule.matches):
            yield Single(f"-m {name}", _alone(sample, table, base, decided))
    by_itself = {spelled.name for spelled in rule.matches} <= _TRANSPORT
    verdict = isinstance(rule.actions[0], Accept | Drop | Return) if rule.actions else True
    if rule.target is not None and by_itself and not verdict:
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
    before, after = (_context(words.get(name, ()), sample.family) for words in (_BEFORE, _AFTER))
    rules = (*before, rule, *after)
    chains = (Chain(name=chain, hook=Hook(chain), policy=Policy.ACCEPT, rules=rules),)
    return replace(sample, tables=(replace(table, chains=chains),), unknown=(), notes=())


_OF_FRAGMENTS: Final = frozenset(field for field in Field if field.text.startswith("fragment."))


def _context(lines: Iterable[str], family: Family) -> tuple[Rule, ...]:
    """Return rules that make the effect of a target visible; they have a line number that no sample has."""
    text = "*mangle\n" + "".join(f"-A FORWARD {line}\n" for line in lines) + "COMMIT\n"
    ruleset = read_ruleset(text.encode(), name="context", family=family)
    return tuple(replace(rule, origin=Origin("context", _CONTEXT)) for rule in ruleset.rules())


_CONTEXT: Final = 99999
"""The line number of rules that are not of the samples."""
_BEFORE: Final[Mapping[str, Sequence[str]]] = {
    "MARK": ("-p tcp -j MARK --set-xmark 0x5a5aa5a6", "! -p tcp -j MARK --set-xmark 0xa5a55a59"),
    "CONNMARK": (
        *("-p tcp -j MARK --set-xmark 0x5a5aa5a6", "! -p tcp -j MARK --set-xmark 0xa5a55a59"),
        *("-p tcp -j CONNMARK --set-xmark 0x3cc3963a", "! -p tcp -j CONNMARK --set-xmark 0xc33c69c5"),
    ),
}
_AFTER: Final[Mapping[str, Sequence[str]]] = {"CONNMARK": ("-j CONNMARK --restore-mark",)}
"""Rules before and after a target: the first set each bit for some packets only; the last shows the
result."""


def faults_of(ruleset: Ruleset, *, level: int = 0) -> tuple[NftPlanter, tuple[Fault, ...]]:
    """Return the planter of a translation and its faults. Raises UnsupportedError if there is none."""
    planter = NftPlanter(lower(ruleset, level=level), EVERY_MATCH)
    faults = [
        fault
        for fault in planter.faults
        if fault.operator not in _OF_CHAINS and f'"line {_CONTEXT}"' not in fault.place.text
    ]
    every = -(-len(faults) // MOST)
    return planter, tuple(faults[:: max(every, 1)])


def tried(single: Single, score: Score, *, level: int = 0) -> None:
    """Plant the faults of a sample and count the results.

    Raises MachineError if packets show a difference without a fault.
    """
    score.samples += 1
    rule = single.rule
    clock = any(isinstance(test, FieldTest) and test.field in CLOCKS for test in flat(rule.tests))
    if clock or all(isinstance(action, SideEffect) for action in rule.actions):
        score.inert += 1
        return
    try:
        planter, faults = faults_of(single.ruleset, level=level)
        batch = _batch(single)
        workloads = prepare([batch], SimulatorBackend(), few=_FEW, many=_FEW)
    except UnsupportedError:
        score.refused += 1
        return
    proven = frozenset(
        fault
        for fault in faults
        if not _OF_OBJECT.match(fault.place.text) and planter.unchanged(fault) is not None
    )
    with Testbed(planter, workloads) as testbed:
        if flaw := testbed.first_difference(None):
            raise MachineError(f"{single.place}: differs without any fault: {flaw}")
        for caught in hunt(faults, testbed, proven=proven):
            hole = caught.verdict is Verdict.SURVIVED and caught.fault not in proven
            score.faults["no change" if caught.fault in proven and not hole else caught.verdict.value] += 1
            if hole:
                score.holes.append((single.place, caught.fault))


def _batch(single: Single) -> Batch:
    node = load_node(_NODES[single.ruleset.family], single.ruleset)
    job = Job(rules=single.ruleset, node=node)
    generated = generate_corpus(job, seed=0).flows
    flows = (*generated, *_later_fragments(generated), *_every_value(single, generated))
    return Batch(rules_path=single.place, rules=single.ruleset, node=node, flows=flows, corpus=None)


def _later_fragments(flows: Iterable[Flow]) -> Iterator[Flow]:
    """Return later fragments whose data begins with the transport header of each flow's first packet."""
    for flow in flows:
        packet, entry = flow.first.packet, flow.first.entry
        if entry is None or packet.is_later_fragment or packet.destination_options is not None:
            continue
        whole = with_fields(packet, routing=None, hop_options=None, fragment=None)
        data = build(whole)[20 if packet.family is Family.IP else 40 :]
        bare = with_fields(whole, sport=None, dport=None, mss=None, icmp_id=None, quoted=None, payload=data)
        for offset in (_USUAL_OFFSET, _HIGH_OFFSET):
            later = with_fields(bare, fragment=Fragment(offset))
            yield Flow(id=f"{flow.id}-later-{offset}", steps=(Send(packet=later, entry=entry),))


def _every_value(single: Single, flows: Sequence[Flow]) -> Iterator[Flow]:
    """Return a flow for each value of a field, for targets that become one nft rule per value."""
    first = next((flow for flow in flows if flow.first.entry is not None), None)
    if first is None:
        return
    packet, entry = first.first.packet, first.first.entry
    match single.extension:
        case "-j TTL" | "-j HL":
            packets = [with_fields(packet, ttl=ttl) for ttl in range(2, 256)]
        case "-j TOS" | "-j DSCP":
            packets = [with_fields(packet, tos=tos) for tos in range(256)]
        case "-j ECN":
            packets = [with_fields(packet, tos=tos) for tos in range(4)]
            if packet.proto == Protocol.TCP:
                packets += [with_fields(packet, flags=TcpFlag(flags)) for flags in range(256)]
        case _:
            packets = []
    for number, each in enumerate(packets):
        yield Flow(id=f"value-{number}", steps=(Send(packet=each, entry=entry),))


_USUAL_OFFSET: Final = 185
_HIGH_OFFSET: Final = 4096
"""An offset of which only the highest bit is set."""


def main() -> int:
    """Print the table; return 1 if a fault is not caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.mutation.extensions", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="this extension, such as limit")
    parser.add_argument("--level", type=int, choices=(0, 1, 2), default=0, help="of the translation")
    parser.add_argument("--list", action="store_true", help="print the faults, and plant none")
    options = parser.parse_args()
    scores: dict[str, Score] = {}
    printed: dict[str, int] = {}
    for single in singles():
        if options.only and single.extension[3:] not in options.only:
            continue
        score = scores.setdefault(single.extension, Score())
        if options.list:
            _listed(single, options.level)
            continue
        try:
            tried(single, score, level=options.level)
        except (InputError, MachineError) as e:
            print(f"FAILED {single.place} {single.extension}: {e}", flush=True)
        for place, fault in score.holes[printed.get(single.extension, 0) :]:
            print(f"NOT CAUGHT  {place}  {fault.key}", flush=True)
        printed[single.extension] = len(score.holes)
    return 0 if options.list else _print(scores)


def _listed(single: Single, level: int) -> None:
    try:
        _, faults = faults_of(single.ruleset, level=level)
    except UnsupportedError as e:
        print(f"{single.extension} {single.place}: refused: {e.refusals[0].feature}")
        return
    print(f"{single.extension} {single.place}: {len(faults)} faults")
    for fault in faults:
        print(f"  {fault.key}")


def _print(scores: dict[str, Score]) -> int:
    print("| extension | samples | faults | rejected by nft | no change | detected |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, score in sorted(scores.items()):
        counts = score.faults
        detected = f"{counts['caught']} of {score.visible}" if score.visible else "-"
        print(
            f"| `{name}` | {score.samples} | {counts.total()} | {counts['refused']} | {counts['no change']}"
            f" | {detected} |"
        )
    return int(any(score.holes for score in scores.values()))


if __name__ == "__main__":
    sys.exit(main())
