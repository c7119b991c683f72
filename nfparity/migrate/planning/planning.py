"""Planning: translates the live rules, and tests the translation with packets."""

from __future__ import annotations

import time
from collections.abc import Callable

from backends.model.node import Node, node_to_json
from backends.model.variant import Variant
from backends.testbed.command import find_tool
from harness.counted import counted
from harness.diff.batch import Batch
from harness.diff.replay import Progress
from harness.diff.result import ParityReport
from nfparity.migrate.planning.plan import FamilyPlan, MigrationPlan
from nfparity.migrate.planning.rules import Rules, read_rules
from nfparity.migrate.planning.translation import digest_of_text, translate
from nfparity.migrate.planning.trial import batch_of, corpus, expected_meaning, try_both
from nfparity.migrate.state.tables import digest_of, save, split
from translate.collector import present_objects_kept
from translate.dataclass import dataclass
from translate.errors import InputError, Note
from translate.ir import Family
from translate.nft import NftOutput

__all__ = [
    "Planned",
    "PlannedFamily",
    "choose_variant",
    "make_plan",
    "translate_live",
]

_WORDS = {Family.IP: "IPv4", Family.IP6: "IPv6"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFamily:
    """One family's part of a plan, with the results of its trial."""

    plan: FamilyPlan
    output: NftOutput
    notes: tuple[Note, ...]
    report: ParityReport
    batch: Batch
    """The packets of the trial, with their rules and node."""
    untried: tuple[str, ...]
    """The kept tables that cannot be simulated; packets were tested without them."""
    seconds: float
    """The time from making the packets to their report, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan with the results of its trial."""

    plan: MigrationPlan
    families: tuple[PlannedFamily, ...]

    @property
    def parity(self) -> bool:
        """True if no packet was treated differently."""
        return all(family.report.parity for family in self.families)


def choose_variant(family: Family, wanted: Variant | None, left: tuple[str, ...] = ()) -> Variant | None:
    """Return the variant with rules of a family outside the tables in ``left``, or None.

    Raises InputError if both variants have such rules and the user wants neither in particular.
    """
    holding = []
    for variant in Variant if wanted is None else (wanted,):
        program = f"{'iptables' if family is Family.IP else 'ip6tables'}-{variant.value}-save"
        if find_tool(program) is None:
            continue
        tables = split(save(variant, family)).items()
        if any(name not in left and not content.is_empty for name, content in tables):
            holding.append(variant)
    if len(holding) > 1:
        raise InputError(
            f"both iptables-legacy and iptables-nft have {_WORDS[family]} rules, and packets pass both; "
            "choose with --variant which to replace; the others are not changed"
        )
    return holding[0] if holding else None


def make_plan(
    variants: dict[Family, Variant],
    node: Node,
    *,
    level: int,
    seed: int,
    say: Callable[[str], None],
    progress: Progress,
    left: tuple[str, ...] = (),
) -> Planned:
    """Translate the live rules of each family, and test them. ``say`` receives progress messages.

    Tables in ``left`` are kept in iptables.

    Raises UnsupportedError with all rules that cannot be translated or must not run twice; MachineError if
    the trial cannot run.
    """
    made = tuple(
        _plan_family(family, variant, left, node, level=level, seed=seed, say=say, progress=progress)
        for family, variant in variants.items()
    )
    shown = {
        family.plan.family.value: {
            "flows": family.report.flows,
            "different": {b.name: b.differing for b in family.report.backends},
            "seconds": round(family.seconds, 1),
        }
        for family in made
    }
    plan = MigrationPlan(
        families=tuple(family.plan for family in made), node=node_to_json(node), seed=seed, trial=shown
    )
    return Planned(plan=plan, families=made)


def translate_live(
    family: Family, variant: Variant, level: int, left: tuple[str, ...] = ()
) -> tuple[FamilyPlan, Rules, NftOutput]:
    """Return one family's plan with its rules and their translation, without a trial.

    Raises the errors of :func:`make_plan`.
    """
    program = f"{'iptables' if family is Family.IP else 'ip6tables'}-{variant.value}-save"
    rules = read_rules(save(variant, family), family, program, left, None)
    output = translate(rules, level)
    plan = FamilyPlan(
        family=family,
        variant=variant,
        left=left,
        rules=rules.text,
        ipsets=rules.ipsets,
        level=level,
        translation=digest_of_text(output.text),
        table_state=expected_meaning(family, output.text),
    )
    return plan, rules, output


def _plan_family(
    family: Family,
    variant: Variant,
    left: tuple[str, ...],
    node: Node,
    *,
    level: int,
    seed: int,
    say: Callable[[str], None],
    progress: Progress,
) -> PlannedFamily:
    plan, rules, output = translate_live(family, variant, level, left)
    read = {table.name for table in rules.tried.sample.tables}
    untried = tuple(table for table in plan.tables if table in left and table not in read)
    say(f"{_WORDS[family]}: making packets from the rules")
    began = time.monotonic()
    made = corpus(rules.tried.whole(), node, seed)
    say(f"{_WORDS[family]}: sending {counted(len(made.flows), 'flow')} through copies of this node")
    with present_objects_kept():
        report = try_both(rules, node, made, variant, level, progress)
    seconds = time.monotonic() - began
    if digest_of(split(save(variant, family))) != plan.digest:
        raise InputError(f"the {_WORDS[family]} rules changed while the plan was made; make another plan")
    return PlannedFamily(
        plan=plan,
        output=output,
        notes=output.notes,
        report=report,
        batch=batch_of(rules, node, made),
        untried=untried,
        seconds=seconds,
    )
