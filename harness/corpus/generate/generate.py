"""Generation of the flows of a corpus: all kinds of them, and their names."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping

from backends.model.clock import begun_at, reads_clock
from backends.model.contract import Job
from backends.model.flow import Flow, Send
from harness.corpus.formats.headers import PLAIN_TIME
from harness.corpus.formats.ruletext import test_text
from harness.corpus.formats.segments import announced_sizes, announcing
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.alike.classes import Classes
from harness.corpus.generate.alike.groups import Member
from harness.corpus.generate.alike.others import other_flows
from harness.corpus.generate.candidates.candidates import Steps
from harness.corpus.generate.further.edges import edge_flows
from harness.corpus.generate.further.masked_matches import MaskedMatch, masked_match_flows
from harness.corpus.generate.further.services import (
    Destination,
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
from translate.dataclass import dataclass, field
from translate.ir import AnyOf, Family, FieldTest, Interval, Test

__all__ = ["GeneratedFlows", "Generation", "Made", "generate_flows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedFlows:
    """The flows of a generated corpus.

    ``alike`` are the ids of flows to all but the first member of each shape; the first member has the same
    flows with its own constants.
    """

    flows: tuple[Flow, ...]
    alike: frozenset[str]


def generate_flows(job: Job, *, seed: int, exhaustive: bool = False, fewer: bool = False) -> GeneratedFlows:
    """Generate flows for the job's rules and node; the same seed gives the same flows.

    Only some of the rules that differ only in constants are searched for every goal. The others get the same
    flows, with their own constants (:mod:`~harness.corpus.generate.alike.others`). With ``exhaustive``, all
    are searched. With ``fewer``, the others get no flows that show nothing that other flows do not:
    docs/decisions/0032-a-trial-of-a-plan-tests-each-thing-once.md lists these.

    Raises UnsupportedError when the simulator, which checks every flow, does not support a rule.
    """
    return Generation.of(job, seed=seed, exhaustive=exhaustive, fewer=fewer).flows()


@dataclass(slots=True, kw_only=True)
class Generation:
    """The searches for the flows of a corpus, and all that they found.

    ``others`` are the flows of members of classes that were not searched. ``unlike`` are members that turned
    out to be treated differently on this node, and were searched. ``fewer`` as in :func:`generate_flows`.
    """

    job: Job
    search: Search
    classes: Classes
    made: Made
    others: list[GoalFlow] = field(default_factory=list)
    unlike: list[Member] = field(default_factory=list)
    fewer: bool = False

    @classmethod
    def of(cls, job: Job, *, seed: int, exhaustive: bool = False, fewer: bool = False) -> Generation:
        """Search, as :func:`generate_flows` says."""
        places = Places.of(job.ruleset, job.node)
        classes = Classes(job.ruleset, ()) if exhaustive else Classes.of(job.ruleset, places)
        search = Search(job, seed, places, classes.chosen)
        made = Made()
        made.add(search)
        self = cls(job=job, search=search, classes=classes, made=made, fewer=fewer)
        for member, of in other_flows(classes, search, made.corpus(), made.uses, fewer=fewer):
            if of is None:
                self.unlike.append(member)
            else:
                self.others += of
        if self.unlike:
            self.classes = classes.with_searched(self.unlike)
            search.widen(self.classes.chosen)
            made.add(search, {place for member in self.unlike for place in member.places})
        return self

    def shown(self) -> Iterator[FlowGoals]:
        """Yield the goals that each flow meets: first those that were searched for, then ``others``."""
        yield from self.made.shown
        for other in self.others:
            yield other.goals

    def flows(self) -> GeneratedFlows:
        """Return the flows, with their names."""
        job, made, places = self.job, self.made, self.search.places
        taken = set(made.taken)
        first = _first_members(self.classes, self.unlike)
        copies = list(_named(self.others, job.ruleset.family, taken))
        flows = [*made.flows, *copies]
        models = [(flow.first, goals) for flow, goals in zip(flows, self.shown(), strict=True)]
        stray_models = [(s.flow.first, s.goals) for s in sorted(made.strays, key=lambda s: not s.visible)]
        edges = list(edge_flows(job.ruleset, models, places, taken, strays=stray_models))
        if self.fewer:
            common = _common_ranges(self.classes)
            edges = [edge for edge in edges if edge.limit not in common.get(edge.place, ())]
        more = itertools.chain(
            (edge.flow for edge in edges),
            member_flows(job.ruleset, models, places, taken, strays=stray_models),
        )
        flows += (flow for flow in more if self.search.can_try(flow.steps))
        sizes = announced_sizes(job.ruleset)
        flows = [announcing(flow, sizes, turn) for turn, flow in enumerate(flows)]
        if reads_clock(job.ruleset):
            flows = [begun_at(flow, PLAIN_TIME) for flow in flows]
        alike = {flow.id for flow in copies} | {e.flow.id for e in edges if first.get(e.place) is False}
        return GeneratedFlows(flows=tuple(flows), alike=_alike(first, made) | alike)


@dataclass(slots=True)
class Made:
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


def _common_ranges(classes: Classes) -> dict[Place, frozenset[Interval]]:
    """Return the ranges that all members of a shape have, for each rule of those that were not searched."""
    ranges: dict[Place, frozenset[Interval]] = {}
    for group in classes.classes:
        common = group.common_ranges
        ranges |= {place: common for member in group.others for place in member.places}
    return ranges


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


def _alike(first: Mapping[Place, bool], made: Made) -> frozenset[str]:
    """Return the ids of flows that match rules of members, but not of the first member of a shape."""
    alike: set[str] = set()
    for flow, goals in zip(made.flows, made.shown, strict=True):
        hits = {first[goal.place] for goal in goals.near if goal.side == HIT and goal.place in first}
        if hits == {False}:
            alike.add(flow.id)
    return frozenset(alike)


def _worth(goals: FlowGoals, search: Search) -> set[Goal]:
    """Return the goals that a flow meets, without far goals that other flows meet as near goals."""
    return goals.near | (goals.far - search.near)


def _named(kept: Iterable[GoalFlow], family: Family, taken: set[str]) -> Iterator[Flow]:
    numbers: dict[str, int] = {}
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
        flow_id = name
        while flow_id in taken:
            numbers[name] = numbers.get(name, 1) + 1
            flow_id = f"{name}-{numbers[name]}"
        taken.add(flow_id)
        yield Flow(id=flow_id, steps=flow.steps, why=why)


def _word(test: Test) -> str:
    match test:
        case FieldTest():
            return test.field.text
        case AnyOf():
            return test.tests[0].field.text
        case _:
            return type(test).__name__.lower()
