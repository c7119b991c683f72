"""Verification that the loaded table is the applied one, by state and by packets."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from backends.model.node import node_from_json
from harness.diff.replay import Progress
from harness.diff.result import ParityReport
from nfparity.migrate.migration import Migration
from nfparity.migrate.planning.plan import FamilyPlan, MigrationPlan
from nfparity.migrate.planning.rules import read_rules
from nfparity.migrate.planning.trial import corpus, try_alone
from nfparity.migrate.state.record import Phase, Record
from nfparity.migrate.steps import drifts, written_again
from nfparity.watch.drift import Drift
from translate.dataclass import dataclass
from translate.errors import MachineError
from translate.ir import Family

__all__ = ["Live", "State", "Verification", "look", "send_packets"]


class State(StrEnum):
    """The state of the applied rules."""

    SAME = "same"
    DRIFT = "drift"
    NOT_THERE = "not there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """The differences of one family's table from the applied one; None if the table is gone.

    ``again`` are the iptables tables that contain rules again.
    """

    family: Family
    differences: tuple[Drift, ...] | None
    again: tuple[str, ...]

    def data(self) -> dict[str, Any]:
        """Return the differences for JSON."""
        return {
            "there": self.differences is not None,
            "differences": [difference.data() for difference in self.differences or ()],
            "iptables rules again": list(self.again),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result of a verification."""

    record: Record
    plan: MigrationPlan
    families: tuple[Live, ...]

    @property
    def state(self) -> State:
        """The overall state."""
        if any(family.differences is None for family in self.families):
            return State.NOT_THERE
        if any(family.differences or family.again for family in self.families):
            return State.DRIFT
        return State.SAME


def look(migration: Migration) -> Verification:
    """Compare the loaded tables with the applied ones. Raises MachineError if nothing is applied here."""
    settled = migration.settle()
    record = settled.record
    migration.insist_on_record(record)
    if record is None or record.phase not in (Phase.APPLIED, Phase.CONFIRMED):
        reason = "" if record is None else f": the last plan is {record.phase.value}"
        reason += "" if settled.undone is None else ", just now: it was interrupted, or never confirmed"
        raise MachineError(f"no plan is applied in this network namespace{reason}")
    if migration.is_forgotten(record):
        raise MachineError(
            "the applied rules are gone from the kernel (a reboot?); nfparity migrate rollback restores the "
            "old rules, and another plan can replace them again"
        )
    plan = migration.plan()
    return Verification(record=record, plan=plan, families=tuple(_live(family) for family in plan.families))


def send_packets(verification: Verification, progress: Progress) -> dict[Family, ParityReport]:
    """Send the plan's packets through a copy of its node with the applied rules. Raises MachineError."""
    node = node_from_json(verification.plan.node, name="the plan's node")
    reports = {}
    for family in verification.plan.families:
        name = f"{family.family.value} rules before"
        rules = read_rules(family.rules, family.family, name, family.left, family.ipsets)
        made = corpus(rules.tried.whole(), node, verification.plan.seed)
        reports[family.family] = try_alone(rules, node, made, family.variant, family.level, progress)
    return reports


def _live(plan: FamilyPlan) -> Live:
    return Live(family=plan.family, differences=drifts(plan), again=written_again(plan))
