"""Generation of a corpus: all kinds of flows, and their coverage."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from backends.model.contract import Job
from backends.model.flow import Flow, Send
from harness.corpus.coverage import CoverageReport, coverage
from harness.corpus.generate.alike import Member
from harness.corpus.generate.classes import Classes
from harness.corpus.generate.edges import edge_flows
from harness.corpus.generate.endings import ending_flows
from harness.corpus.generate.goals import HIT, Goal, Seen
from harness.corpus.generate.members import member_flows
from harness.corpus.generate.minimal import cover
from harness.corpus.generate.others import other_flows
from harness.corpus.generate.places import Places
from harness.corpus.generate.search import Found, Search
from harness.corpus.generate.services import destination, destination_name, service_flows, services_of
from harness.corpus.generate.strays import stray_flows
from harness.corpus.reachability import RuleId
from harness.corpus.ruletext import test_text
from harness.corpus.segments import announced_sizes, announcing
from translate.ir import AnyOf, Family, Field, FieldTest, Name, Rule, Test

__all__ = ["GeneratedCorpus", "generate_corpus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedCorpus:
    """A generated corpus and its coverage.

    ``services`` is the number of destinations that the rules translate. ``alone`` is the number of tests that
    some flow fails while all other tests of their rule hold; ``together`` is the number of tests that flows
    fail only together with others. Both count a test once per hook. ``doubts`` gives reasons for the rules
    that are neither hit nor proven unreachable.
    """

    flows: tuple[Flow, ...]
    coverage: CoverageReport
    services: int
    alone: int
    together: int
    doubts: dict[RuleId, str]


def generate_corpus(job: Job, *, seed: int, by_class: bool = False) -> GeneratedCorpus:
    """Generate a corpus for the job's rules and node; the same seed gives the same corpus.

    With ``by_class``, of rules that differ only in constants some are searched for every goal; the others get
    the flows of these with their own constants (:mod:`~harness.corpus.generate.others`). Raises
    UnsupportedError when the simulator, which checks every flow, does not support a rule.
    """
    places = Places.of(job.ruleset, job.node)
    classes = Classes.of(job.ruleset, places) if by_class else Classes(job.ruleset, ())
    while True:
        made, odd = _made(job, seed, places, classes)
        if made is not None:
            return made
        classes = classes.with_searched(odd)


def _made(
    job: Job, seed: int, places: Places, classes: Classes
) -> tuple[GeneratedCorpus | None, list[Member]]:
    """Return the corpus; None, with the members, if some do not show what their class's model shows."""
    search = Search(job, seed, places, classes.chosen)
    search.run()
    services = services_of(f.seen for f in search.found)
    used = list(service_flows(services, places))
    uses = {flow.steps: who for who, flow in used}
    flows, shown = _observed((flow for _, flow in used), search)
    given = {goal for seen in shown for goal in _worth(seen, search)}
    chosen = cover([_worth(f.seen, search) for f in search.found], given)
    taken: set[str] = set()
    flows += _named([search.found[i] for i in chosen], job.ruleset.family, taken)
    shown += (search.found[i].seen for i in chosen)
    endings, ended = _observed(ending_flows(services, places), search)
    flows += endings
    shown += ended
    taken |= {flow.id for flow in flows}
    found = list(stray_flows(search, taken))
    flows += (one.flow for one in found)
    shown += (one.seen for one in found)
    others: list[Found] = []
    odd: list[Member] = []
    corpus = [(flow.steps, seen) for flow, seen in zip(flows, shown, strict=True)]
    for member, of in other_flows(classes, search, corpus, uses):
        if of is None:
            odd.append(member)
        else:
            others += of
    if odd:
        return None, odd
    flows += _named(others, job.ruleset.family, taken)
    shown += (one.seen for one in others)
    models = [(flow.first, seen) for flow, seen in zip(flows, shown, strict=True)]
    strays = [(one.flow.first, one.seen) for one in sorted(found, key=lambda one: not one.telling)]
    more = itertools.chain(
        edge_flows(job.ruleset, models, places, taken, strays=strays),
        member_flows(job.ruleset, models, places, taken, strays=strays),
    )
    flows += (flow for flow in more if search.can_try(flow.steps))
    sizes = announced_sizes(job.ruleset)
    flows = [announcing(flow, sizes, turn) for turn, flow in enumerate(flows)]
    report = coverage(job.ruleset, [_flows_per_rule(shown)], counted_by="simulator", flows=len(flows))
    more_services = {destination(sent.packet) for one in others for sent in one.seen.services}
    near = search.near.union(*(one.seen.near for one in others))
    far = search.far.union(*(one.seen.far for one in others)) - near
    made = GeneratedCorpus(
        flows=tuple(flows),
        coverage=report,
        services=len(services) + len(more_services),
        alone=sum(g.side != HIT for g in near),
        together=sum(g.side != HIT for g in far),
        doubts=_doubts(job, search, report, classes),
    )
    return made, []


def _observed(flows: Iterable[Flow], search: Search) -> tuple[list[Flow], list[Seen]]:
    """Return the flows that can be simulated, and what each of them shows."""
    found = [(flow, seen) for flow in flows if (seen := search.observe(flow.steps)) is not None]
    return [flow for flow, _ in found], [seen for _, seen in found]


def _flows_per_rule(shown: Iterable[Seen]) -> dict[RuleId, tuple[int, int | None]]:
    """Return for each rule the numbers of flows with a packet that hits it, and with one that misses it."""
    counts: dict[RuleId, list[int]] = {}
    for one in shown:
        sides = {((g.table.value, g.chain, g.rule), g.side != HIT) for g in (*one.near, *one.far)}
        for rule, passed in sides:
            counts.setdefault(rule, [0, 0])[passed] += 1
    return {rule: (hits, passes) for rule, (hits, passes) in counts.items()}


def _worth(seen: Seen, search: Search) -> set[Goal]:
    """Return the goals that a flow meets, without far goals that other flows meet as near goals."""
    return seen.near | (seen.far - search.near)


def _named(kept: Iterable[Found], family: Family, taken: set[str]) -> Iterator[Flow]:
    for one in kept:
        place = f"line{one.rule.origin.line}-{one.goal.hook.value.lower()}"
        if one.use is not None:
            first = one.steps[0]
            assert isinstance(first, Send)
            name, why = f"service-{destination_name(first.packet)}-{one.use}", f"uses {one.rule.origin.place}"
        elif one.goal.side == HIT:
            name, why = f"{place}-hit", f"hits {one.rule.origin.place}"
        else:
            test = one.rule.tests[one.goal.side]
            name = f"{place}-miss-{_word(test)}"
            how = "just misses" if one.goal in one.seen.near else "misses"
            why = f"{how} {one.rule.origin.place}: not {test_text(test, family)}"
        flow_id = _free(name, taken)
        taken.add(flow_id)
        yield Flow(id=flow_id, steps=one.steps, why=why)


def _free(name: str, taken: set[str]) -> str:
    names = (f"{name}-{n + 1}" if n else name for n in itertools.count())
    return next(n for n in names if n not in taken)


def _word(test: Test) -> str:
    match test:
        case FieldTest():
            return test.field.text
        case AnyOf():
            return test.tests[0].field.text
        case _:
            return type(test).__name__.lower()


def _doubts(job: Job, search: Search, report: CoverageReport, classes: Classes) -> dict[RuleId, str]:
    """Return the likely reasons why rules that are not proven unreachable were not hit."""
    models = {(table.value, *at): rule for (table, *at), rule in classes.models()} if report.missed else {}
    names = {"lo", *(i.name for i in job.node.interfaces)}
    routed = {"lo", *(r.dev for r in job.node.routes), *(i.name for i in job.node.interfaces if i.addresses)}
    failed: dict[RuleId, dict[int, None]] = {}
    for goal in sorted(search.near | search.far):
        failed.setdefault((goal.table.value, goal.chain, goal.rule), {})[goal.side] = None
    found: dict[RuleId, str] = {}
    for one in report.missed:
        key = (one.table, one.chain, one.number - 1)
        model = models.get(key)
        if model is not None:
            found[key] = f"it was not searched for: it differs from {model.origin.place} in constants alone"
            continue
        missing = _missing_interface(one.rule, names)
        silent = _missing_interface(one.rule, routed, Field.OIF)
        tests = [test_text(one.rule.tests[k], job.ruleset.family) for k in failed.get(key, ())]
        if missing is not None:
            found[key] = f"the node has no interface {missing}"
        elif silent is not None:
            found[key] = f"no route of the node leads to {silent}"
        elif tests:
            found[key] = f"packets reached it, and failed one of: {', '.join(tests)}"
        else:
            found[key] = "no packet that was tried reached it"
        if key in search.unsimulated:
            found[key] += f"; others were not tried: {search.unsimulated[key]}"
    return found


def _missing_interface(rule: Rule, names: set[str], *fields: Field) -> str | None:
    """Return the interface that the rule matches, if it is none of ``names``."""
    for test in rule.tests:
        about = fields or (Field.IIF, Field.OIF)
        if isinstance(test, FieldTest) and test.field in about and not test.negated:
            wanted = [v for v in test.values if isinstance(v, Name)]
            if not any(v.matches(n) for v in wanted for n in names):
                return " or ".join(v.text + "+" * v.wildcard for v in wanted)
    return None
