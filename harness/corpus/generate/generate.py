"""Generation of a corpus: all kinds of flows, and their coverage."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from backends.model.clock import begun_at, reads_clock
from backends.model.contract import Job
from backends.model.flow import Flow, Send
from harness.corpus.coverage import CoverageReport, coverage
from harness.corpus.formats.headers import PLAIN_TIME
from harness.corpus.formats.ruletext import test_text
from harness.corpus.formats.segments import announced_sizes, announcing
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.alike.classes import Classes
from harness.corpus.generate.alike.groups import Member
from harness.corpus.generate.alike.others import other_flows
from harness.corpus.generate.candidates.candidates import Steps
from harness.corpus.generate.further.edges import Edge, edge_flows
from harness.corpus.generate.further.masked_matches import MaskedMatch, masked_match_flows
from harness.corpus.generate.further.services import (
    Destination,
    destination,
    destination_name,
    service_flows,
    services_of,
)
from harness.corpus.generate.further.teardown import teardown_flows
from harness.corpus.generate.goals import HIT, FlowGoals, Goal
from harness.corpus.generate.members import member_flows
from harness.corpus.generate.minimal import cover
from harness.corpus.generate.search import GoalFlow, Search
from harness.corpus.generate.selection import Place
from harness.corpus.reachability import RuleId
from translate.ir import AnyOf, Family, Field, FieldTest, Interval, Name, Rule, Test

__all__ = ["GeneratedCorpus", "generate_corpus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedCorpus:
    """A generated corpus and its coverage.

    ``services`` is the number of destinations that the rules translate. ``alone`` is the number of tests that
    some flow fails while all other tests of their rule hold; ``together`` is the number of tests that flows
    fail only together with others. Both count a test once per hook. ``doubts`` gives reasons for the rules
    that are neither hit nor proven unreachable. ``alike`` are the ids of flows to all but the first member of
    each shape; the first member has the same flows with its own constants. ``follow_ups`` are those of them
    that differ from another flow in later packets only, which meet no rule of their member.
    ``common_limits`` are those at the ends of a range that all members of a shape have, for a member that was
    not searched.
    """

    flows: tuple[Flow, ...]
    alike: frozenset[str]
    follow_ups: frozenset[str]
    common_limits: frozenset[str]
    coverage: CoverageReport
    services: int
    alone: int
    together: int
    doubts: dict[RuleId, str]


def generate_corpus(job: Job, *, seed: int, exhaustive: bool = False) -> GeneratedCorpus:
    """Generate a corpus for the job's rules and node; the same seed gives the same corpus.

    Only some of the rules that differ only in constants are searched for every goal. The others get the same
    flows, with their own constants (:mod:`~harness.corpus.generate.alike.others`). With ``exhaustive``, all
    are searched. Raises UnsupportedError when the simulator, which checks every flow, does not support a
    rule.
    """
    places = Places.of(job.ruleset, job.node)
    classes = Classes(job.ruleset, ()) if exhaustive else Classes.of(job.ruleset, places)
    search = Search(job, seed, places, classes.chosen)
    made = _Made()
    made.add(search)
    others: list[GoalFlow] = []
    unlike: list[Member] = []
    for member, of in other_flows(classes, search, made.corpus(), made.uses):
        if of is None:
            unlike.append(member)
        else:
            others += of
    if unlike:
        classes = classes.with_searched(unlike)
        search.widen(classes.chosen)
        made.add(search, {place for member in unlike for place in member.places})
    return _finished(job, search, classes, made, others, unlike)


@dataclass(slots=True)
class _Made:
    """The flows that searches found, and the goals that each of them meets.

    ``uses`` maps flows to services to the kind of client that sends them; ``taken`` are the ids in use.
    """

    flows: list[Flow] = field(default_factory=list)
    shown: list[FlowGoals] = field(default_factory=list)
    strays: list[MaskedMatch] = field(default_factory=list)
    uses: dict[Steps, str] = field(default_factory=dict)
    services: set[Destination] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)

    def corpus(self) -> list[tuple[Steps, FlowGoals]]:
        """Return the steps of each flow, with the goals that it meets."""
        return [(flow.steps, goals) for flow, goals in zip(self.flows, self.shown, strict=True)]

    def add(self, search: Search, rules: Collection[Place] | None = None) -> None:
        """Search for goals (only for those of ``rules``, if given), and add flows that meet them.

        Further flows use the services that were found, end connections to them, or match a rule but fail a
        test of a jump that leads to it.
        """
        before = len(search.flows)
        search.run(rules)
        goal_flows = search.flows[before:]
        services = [s for s in services_of(f.goals for f in goal_flows) if s.destination not in self.services]
        self.services.update(service.destination for service in services)
        _forget_sightings(f.goals for f in goal_flows)
        used = list(service_flows(services, search.places))
        self.uses |= {flow.steps: who for who, flow in used}
        self._observe((flow for _, flow in used), search)
        known_goals = {goal for goals in self.shown for goal in _worth(goals, search)}
        kept = cover([_worth(f.goals, search) for f in goal_flows], known_goals)
        chosen = [goal_flows[i] for i in kept]
        self.flows += _named(chosen, search.places.family, self.taken)
        self.shown += (flow.goals for flow in chosen)
        self._observe(teardown_flows(services, search.places), search)
        self.taken |= {flow.id for flow in self.flows}
        strays = list(masked_match_flows(search, self.taken, rules))
        self.flows += (stray.flow for stray in strays)
        self.shown += (stray.goals for stray in strays)
        self.strays += strays
        _forget_sightings(stray.goals for stray in strays)

    def _observe(self, flows: Iterable[Flow], search: Search) -> None:
        """Add the flows that can be simulated."""
        for flow in flows:
            goals = search.observe(flow.steps)
            if goals is not None:
                self.flows.append(flow)
                self.shown.append(goals)
                _forget_sightings([goals])


def _forget_sightings(shown: Iterable[FlowGoals]) -> None:
    """Forget the packets that showed the goals, which need more memory than all the flows."""
    for goals in shown:
        goals.sightings.clear()


def _finished(
    job: Job, search: Search, classes: Classes, made: _Made, others: list[GoalFlow], unlike: list[Member]
) -> GeneratedCorpus:
    """Return the corpus of the flows that were made by searches, and those of other members of classes.

    ``unlike`` are members of classes that turned out to be treated differently on this node.
    """
    flows, shown, taken = made.flows, made.shown, made.taken
    first = _first_members(classes, unlike)
    alike = _alike(first, made)
    copies = list(_named(others, job.ruleset.family, taken))
    flows += copies
    shown += (other.goals for other in others)
    models = [(flow.first, goals) for flow, goals in zip(flows, shown, strict=True)]
    stray_models = [(s.flow.first, s.goals) for s in sorted(made.strays, key=lambda s: not s.visible)]
    edges = list(edge_flows(job.ruleset, models, search.places, taken, strays=stray_models))
    more = itertools.chain(
        (edge.flow for edge in edges),
        member_flows(job.ruleset, models, search.places, taken, strays=stray_models),
    )
    flows += (flow for flow in more if search.can_try(flow.steps))
    sizes = announced_sizes(job.ruleset)
    flows = [announcing(flow, sizes, turn) for turn, flow in enumerate(flows)]
    if reads_clock(job.ruleset):
        flows = [begun_at(flow, PLAIN_TIME) for flow in flows]
    report = coverage(job.ruleset, [_flows_per_rule(shown)], counted_by="simulator", flows=len(flows))
    more_services = {destination(sent.packet) for other in others for sent in other.goals.services}
    near = search.near.union(*(other.goals.near for other in others))
    far = search.far.union(*(other.goals.far for other in others)) - near
    return GeneratedCorpus(
        flows=tuple(flows),
        alike=alike | {f.id for f in copies} | {e.flow.id for e in edges if first.get(e.place) is False},
        follow_ups=frozenset(flow.id for flow, other in zip(copies, others, strict=True) if other.follows),
        common_limits=frozenset(_common_limits(classes, edges)),
        coverage=report,
        services=len(made.services | more_services),
        alone=sum(g.side != HIT for g in near),
        together=sum(g.side != HIT for g in far),
        doubts=_doubts(job, search, report, classes),
    )


def _common_limits(classes: Classes, edges: Iterable[Edge]) -> Iterator[str]:
    ranges: dict[Place, frozenset[Interval]] = {}
    for group in classes.classes:
        common = group.common_ranges
        ranges |= {place: common for member in group.others for place in member.places}
    return (edge.flow.id for edge in edges if edge.limit in ranges.get(edge.place, ()))


def _first_members(classes: Classes, unlike: Iterable[Member]) -> dict[Place, bool]:
    """Return for each rule of a member whether the member is the first one of its shape.

    Members of ``unlike`` count as first, because no other flows resemble theirs: this node treats them
    differently.
    """
    first = {
        place: number == 0
        for members in classes.shapes
        for number, member in enumerate(members)
        for place in member.places
    }
    return first | {place: True for member in unlike for place in member.places}


def _alike(first: Mapping[Place, bool], made: _Made) -> frozenset[str]:
    """Return the ids of flows that match rules of members, but not of the first member of a shape."""
    alike: set[str] = set()
    for flow, goals in zip(made.flows, made.shown, strict=True):
        hits = {first[goal.place] for goal in goals.near if goal.side == HIT and goal.place in first}
        if hits == {False}:
            alike.add(flow.id)
    return frozenset(alike)


def _flows_per_rule(shown: Iterable[FlowGoals]) -> dict[RuleId, tuple[int, int | None]]:
    """Return for each rule the numbers of flows with a packet that hits it, and with one that misses it."""
    counts: dict[RuleId, list[int]] = {}
    for goals in shown:
        sides = {((g.table.value, g.chain, g.rule), g.side != HIT) for g in (*goals.near, *goals.far)}
        for rule, passed in sides:
            counts.setdefault(rule, [0, 0])[passed] += 1
    return {rule: (hits, passes) for rule, (hits, passes) in counts.items()}


def _worth(goals: FlowGoals, search: Search) -> set[Goal]:
    """Return the goals that a flow meets, without far goals that other flows meet as near goals."""
    return goals.near | (goals.far - search.near)


def _named(kept: Iterable[GoalFlow], family: Family, taken: set[str]) -> Iterator[Flow]:
    for flow in kept:
        place = f"line{flow.rule.origin.line}-{flow.goal.hook.value.lower()}"
        if flow.use is not None:
            first = flow.steps[0]
            assert isinstance(first, Send)
            name = f"service-{destination_name(first.packet)}-{flow.use}"
            why = f"uses {flow.rule.origin.place}"
        elif flow.goal.side == HIT:
            name, why = f"{place}-hit", f"hits {flow.rule.origin.place}"
        else:
            test = flow.rule.tests[flow.goal.side]
            name = f"{place}-miss-{_word(test)}"
            how = "just misses" if flow.goal in flow.goals.near else "misses"
            why = f"{how} {flow.rule.origin.place}: not {test_text(test, family)}"
        flow_id = _free(name, taken)
        taken.add(flow_id)
        yield Flow(id=flow_id, steps=flow.steps, why=why)


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
