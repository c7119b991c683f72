"""A generated corpus: its flows, their coverage, and the reasons for rules that no flow hits."""

from __future__ import annotations

from collections.abc import Iterable

from backends.model.contract import Job
from backends.model.flow import Flow
from harness.corpus.coverage import CoverageReport, coverage
from harness.corpus.formats.ruletext import test_text
from harness.corpus.generate.further.services import destination
from harness.corpus.generate.generate import Generation
from harness.corpus.generate.goals import HIT, FlowGoals
from harness.corpus.reachability import RuleId
from translate.dataclass import dataclass
from translate.ir import Field, FieldTest, Name, Rule

__all__ = ["GeneratedCorpus", "generate_corpus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedCorpus:
    """A generated corpus and its coverage.

    ``services`` is the number of destinations that the rules translate. ``alone`` is the number of tests that
    some flow fails while all other tests of their rule hold; ``together`` is the number of tests that flows
    fail only together with others. Both count a test once per hook. ``doubts`` gives reasons for the rules
    that are neither hit nor proven unreachable. ``alike`` as in
    :class:`~harness.corpus.generate.generate.GeneratedFlows`.
    """

    flows: tuple[Flow, ...]
    alike: frozenset[str]
    coverage: CoverageReport
    services: int
    alone: int
    together: int
    doubts: dict[RuleId, str]


def generate_corpus(job: Job, *, seed: int, exhaustive: bool = False) -> GeneratedCorpus:
    """Generate a corpus for the job's rules and node; the same seed gives the same corpus.

    The flows are those of :func:`~harness.corpus.generate.generate.generate_flows`, with its errors.
    """
    generation = Generation.of(job, seed=seed, exhaustive=exhaustive)
    generated = generation.flows()
    search, others = generation.search, generation.others
    counts = _flows_per_rule(generation.shown())
    report = coverage(job.ruleset, [counts], counted_by="simulator", flows=len(generated.flows))
    more_services = {destination(sent.packet) for other in others for sent in other.goals.services}
    near = search.near.union(*(other.goals.near for other in others))
    far = search.far.union(*(other.goals.far for other in others)) - near
    return GeneratedCorpus(
        flows=generated.flows,
        alike=generated.alike,
        coverage=report,
        services=len(generation.made.services | more_services),
        alone=sum(goal.side != HIT for goal in near),
        together=sum(goal.side != HIT for goal in far),
        doubts=_doubts(generation, report),
    )


def _flows_per_rule(shown: Iterable[FlowGoals]) -> dict[RuleId, tuple[int, int | None]]:
    """Return for each rule the numbers of flows with a packet that hits it, and with one that misses it."""
    counts: dict[RuleId, list[int]] = {}
    for goals in shown:
        sides = {((g.table.value, g.chain, g.rule), g.side != HIT) for g in (*goals.near, *goals.far)}
        for rule, passed in sides:
            counts.setdefault(rule, [0, 0])[passed] += 1
    return {rule: (hits, passes) for rule, (hits, passes) in counts.items()}


def _doubts(generation: Generation, report: CoverageReport) -> dict[RuleId, str]:
    """Return the likely reasons why rules that are not proven unreachable were not hit."""
    job, search, classes = generation.job, generation.search, generation.classes
    models = {(table.value, *at): rule for (table, *at), rule in classes.models()} if report.missed else {}
    names = {"lo", *(i.name for i in job.node.interfaces)}
    routed = {"lo", *(r.dev for r in job.node.routes), *(i.name for i in job.node.interfaces if i.addresses)}
    failed: dict[RuleId, dict[int, None]] = {}
    for goal in sorted(search.near | search.far):
        failed.setdefault((goal.table.value, goal.chain, goal.rule), {})[goal.side] = None
    doubts: dict[RuleId, str] = {}
    for missed in report.missed:
        key = (missed.table, missed.chain, missed.number - 1)
        model = models.get(key)
        if model is not None:
            doubts[key] = (
                f"no flow was searched for it, because it differs from {model.origin.place} only in constants"
            )
            continue
        missing = _missing_interface(missed.rule, names)
        silent = _missing_interface(missed.rule, routed, Field.OIF)
        tests = [test_text(missed.rule.tests[k], job.ruleset.family) for k in failed.get(key, ())]
        if missing is not None:
            doubts[key] = f"the node has no interface {missing}"
        elif silent is not None:
            doubts[key] = f"no route of the node leads to {silent}"
        elif tests:
            doubts[key] = f"packets reached it, and failed one of: {', '.join(tests)}"
        else:
            doubts[key] = "no packet that was tried reached it"
        if key in search.unsimulated:
            doubts[key] += f"; others were not tried: {search.unsimulated[key]}"
    return doubts


def _missing_interface(rule: Rule, names: set[str], *fields: Field) -> str | None:
    """Return the interface that the rule matches, if it is none of ``names``."""
    for test in rule.tests:
        about = fields or (Field.IIF, Field.OIF)
        if isinstance(test, FieldTest) and test.field in about and not test.negated:
            wanted = [v for v in test.values if isinstance(v, Name)]
            if not any(v.matches(n) for v in wanted for n in names):
                return " or ".join(v.text + "+" * v.wildcard for v in wanted)
    return None
