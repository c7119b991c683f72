"""Coverage: the rules that a corpus hits, the rules that it misses, and the rules that no packet can hit.

A rule is hit when a packet matches it. Hits are counted by the simulator's trace (on every branch),
or by iptables-legacy on the real kernel (:mod:`harness.diff.kernelcounts`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from backends.model.contract import Job
from backends.model.flow import Flow
from backends.simulator import RulesSkipped, RuleVisited, Simulation
from harness.corpus.reachability import RuleId, dead_ends, unreachable_rules
from translate.dataclass import dataclass
from translate.ir import Rule, Ruleset

__all__ = ["CoverageReport", "CoveredRule", "count_in_simulator", "coverage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveredRule:
    """A rule, with the numbers of packets that matched and did not match it (None: unknown).

    With kernel counters, the first number is 1 or 0. ``unreachable`` is the proof that no packet
    matches the rule; ``idle`` is the reason why it has no effect.
    """

    table: str
    chain: str
    number: int
    rule: Rule
    matched: int
    passed: int | None
    unreachable: str | None = None
    idle: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageReport:
    """All rules of one ruleset in the order in which they were written."""

    source: str
    counted_by: str
    flows: int
    rules: tuple[CoveredRule, ...]

    @property
    def missed(self) -> tuple[CoveredRule, ...]:
        """Rules that the corpus does not hit, and that are not proven unreachable."""
        return tuple(r for r in self.rules if not r.matched and r.unreachable is None)

    @property
    def unreachable(self) -> tuple[CoveredRule, ...]:
        """Rules that no packet can match."""
        return tuple(r for r in self.rules if r.unreachable is not None)


def count_in_simulator(job: Job, flows: Iterable[Flow]) -> dict[RuleId, tuple[int, int | None]]:
    """Return the numbers of matches and non-matches of each rule, over every branch."""
    simulation = Simulation(job)
    matches: Counter[tuple[str, str, int, bool]] = Counter()
    skipped: Counter[tuple[str, str, int, int]] = Counter()
    for flow in flows:
        for branch in simulation.trace(flow, every_rule=False):
            for step in branch.steps:
                for event in step.events:
                    if isinstance(event, RuleVisited):
                        matches[event.table.value, event.chain, event.index - 1, event.matched] += 1
                    elif isinstance(event, RulesSkipped):
                        skipped[event.table.value, event.chain, event.first - 1, event.last] += 1
    for (table, chain, first, last), times in skipped.items():
        for index in range(first, last):
            matches[table, chain, index, False] += times
    return {rule[:3]: (matches[*rule[:3], True], matches[*rule[:3], False]) for rule in matches}


def coverage(
    ruleset: Ruleset,
    counts: Iterable[dict[RuleId, tuple[int, int | None]]],
    *,
    counted_by: str,
    flows: int,
) -> CoverageReport:
    """Return the report for one ruleset from one or more counts."""
    total: dict[RuleId, tuple[int, int | None]] = {}
    for count in counts:
        for key, (yes, no) in count.items():
            before, missed = total.get(key, (0, 0))
            total[key] = (before + yes, None if no is None or missed is None else missed + no)
    proofs, idle = unreachable_rules(ruleset), dead_ends(ruleset)
    rules = []
    for table in ruleset.tables:
        for chain in table.chains:
            for index, rule in enumerate(chain.rules):
                key = table.name.value, chain.name, index
                yes, no = total.get(key, (0, 0))
                rules.append(
                    CoveredRule(
                        table=key[0],
                        chain=chain.name,
                        number=index + 1,
                        rule=rule,
                        matched=yes,
                        passed=no,
                        unreachable=proofs.get(key),
                        idle=idle.get(key),
                    )
                )
    rules.sort(key=lambda r: r.rule.origin.line)
    return CoverageReport(source=ruleset.source, counted_by=counted_by, flows=flows, rules=tuple(rules))
