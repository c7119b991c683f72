"""From live rules to a plan: what to load, what to remove, and whether packets agree."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from backends.kernel.command import find_tool, run
from backends.node import Node, node_to_json
from harness.inputs import InputOptions, read_some
from harness.migrate.plan import FamilyPlan, MigrationPlan
from harness.migrate.repeatable import insist_on_repeatable
from harness.migrate.tables import digest_of, save, split
from harness.migrate.trial import corpus, expected_meaning, try_both
from harness.parity import ParityReport
from harness.replay import Progress
from harness.snapshot.stack import Stack
from translate.errors import InputError, MachineError, Note
from translate.ir import Family, Ruleset
from translate.nft import NftOutput, emit
from translate.passes import lower
from translate.read import read_ipsets, with_sets

__all__ = [
    "Planned",
    "PlannedFamily",
    "choose_stack",
    "live_ruleset",
    "make_plan",
    "ruleset_of",
    "translate_live",
]

_WORDS = {Family.IP: "IPv4", Family.IP6: "IPv6"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFamily:
    """One family's part of a plan, and how it came about."""

    plan: FamilyPlan
    output: NftOutput
    notes: tuple[Note, ...]
    report: ParityReport
    seconds: float
    """How long the packets took, from making them to their report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan with what it was made from."""

    plan: MigrationPlan
    families: tuple[PlannedFamily, ...]

    @property
    def parity(self) -> bool:
        """Whether no packet was treated differently."""
        return all(one.report.parity for one in self.families)


def choose_stack(family: Family, asked: Stack | None) -> Stack | None:
    """Return the stack that holds rules of a family, None when neither does.

    Raises InputError when both do and nobody has ``asked`` for one.
    """
    holding = []
    for stack in Stack if asked is None else (asked,):
        program = f"{'iptables' if family is Family.IP else 'ip6tables'}-{stack.value}-save"
        if find_tool(program) is None:
            continue
        if any(not one.is_empty for one in split(save(stack, family)).values()):
            holding.append(stack)
    if len(holding) > 1:
        raise InputError(
            f"both iptables-legacy and iptables-nft hold {_WORDS[family]} rules, and a packet meets both; "
            "say with --stack whose are to be replaced: the others stay as they are"
        )
    return holding[0] if holding else None


def live_ruleset(stack: Stack, family: Family) -> tuple[Ruleset, str, str]:
    """Return the live rules as read, as printed, and the ipsets that they ask. Raises ParseError."""
    text = save(stack, family)
    program = f"{'iptables' if family is Family.IP else 'ip6tables'}-{stack.value}-save"
    ruleset = _read(text, family, program)
    sets = _ipsets() if any(ruleset.set_tests()) else ""
    return ruleset_of(text, family, sets, program), text, sets


def ruleset_of(text: str, family: Family, ipsets: str, name: str) -> Ruleset:
    """Read rules with the ipsets that they ask. Raises ParseError."""
    ruleset = _read(text, family, name)
    if not ipsets:
        return ruleset
    return with_sets(ruleset, read_ipsets(ipsets.encode(errors="surrogateescape"), name="ipset save"))


def make_plan(
    stacks: dict[Family, Stack],
    node: Node,
    *,
    level: int,
    seed: int,
    told: Callable[[str], None],
    progress: Progress,
) -> Planned:
    """Translate the live rules of each family, and try them. ``told`` hears what is being done.

    Raises UnsupportedError with all that cannot be translated, and with the rules that may not be asked
    twice; MachineError where the trial cannot run.
    """
    made = tuple(
        _plan_family(family, stack, node, level=level, seed=seed, told=told, progress=progress)
        for family, stack in stacks.items()
    )
    shown = {
        one.plan.family.value: {
            "flows": one.report.flows,
            "different": {b.name: b.differing for b in one.report.backends},
            "seconds": round(one.seconds, 1),
        }
        for one in made
    }
    plan = MigrationPlan(
        families=tuple(one.plan for one in made), node=node_to_json(node), seed=seed, trial=shown
    )
    return Planned(plan=plan, families=made)


def translate_live(family: Family, stack: Stack, level: int) -> tuple[FamilyPlan, Ruleset, NftOutput]:
    """Return one family's plan with the rules that it was made from, and their translation; no packets.

    Raises as :func:`make_plan`.
    """
    ruleset, text, ipsets = live_ruleset(stack, family)
    output = emit(lower(ruleset, level=level))
    insist_on_repeatable(ruleset)
    plan = FamilyPlan(
        family=family,
        stack=stack,
        rules=text,
        ipsets=ipsets,
        level=level,
        load=output.text,
        meaning=expected_meaning(family, output.text),
    )
    return plan, ruleset, output


def _plan_family(
    family: Family,
    stack: Stack,
    node: Node,
    *,
    level: int,
    seed: int,
    told: Callable[[str], None],
    progress: Progress,
) -> PlannedFamily:
    plan, ruleset, output = translate_live(family, stack, level)
    told(f"{_WORDS[family]}: making packets from the rules")
    began = time.monotonic()
    flows = corpus(ruleset, node, seed)
    told(f"{_WORDS[family]}: sending {len(flows)} flows through copies of this node")
    report = try_both(ruleset, node, flows, stack, level, progress)
    seconds = time.monotonic() - began
    if digest_of(split(save(stack, family))) != plan.digest:
        raise InputError(f"the {_WORDS[family]} rules have changed while the plan was made; make it again")
    return PlannedFamily(plan=plan, output=output, notes=output.notes, report=report, seconds=seconds)


def _read(text: str, family: Family, name: str) -> Ruleset:
    return read_some(text.encode(errors="surrogateescape"), name=name, options=InputOptions(family=family))


def _ipsets() -> str:
    done = run(("ipset", "save"), inherit=True)
    if done.returncode:
        raise MachineError(f"ipset save: {done.stderr.strip()}")
    return done.stdout
