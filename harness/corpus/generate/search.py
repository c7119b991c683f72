"""Search for a flow for every goal: try candidates in the simulator, and keep those that meet a new goal."""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from backends.model.contract import Job
from backends.model.flow import Again, Flow, Reply, Send
from backends.model.sourceports import reads_source_ports
from backends.simulator import Choices, Simulation, Watched
from harness.corpus.formats.headers import PLAIN_TIME
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.candidates.candidates import Candidates, Steps, host_unreachable, was_changed
from harness.corpus.generate.candidates.constraints import Constraints, constraints_of, opposite
from harness.corpus.generate.goals import HIT, FlowGoals, Goal, Sighting, Wanted, observe
from harness.corpus.generate.members import without_sets
from harness.corpus.generate.rule_paths import RulePath, paths_to_rules
from harness.corpus.generate.selection import Place, Selection
from harness.corpus.reachability import RuleId
from translate.dataclass import dataclass, field
from translate.errors import UnsupportedError
from translate.ir import (
    AnyOf,
    ConnectionLimit,
    Field,
    FieldTest,
    HashLimit,
    Hook,
    Interval,
    Limit,
    Quota,
    Recent,
    Rule,
    Ruleset,
    Table,
    TableName,
    Test,
)

__all__ = ["GoalFlow", "Search"]

_TRIES_TO_HIT: Final = 48
_TRIES_TO_MISS: Final = 12
_MOST_SIGHTINGS: Final = 400
_LONGEST_BURST: Final = 50
"""The longest burst that a flow exhausts; each packet of the burst is a step of the flow."""
_ALL: Final = Wanted()
_ORDER: Final = (TableName.RAW, TableName.MANGLE, TableName.NAT, TableName.FILTER, TableName.SECURITY)


@dataclass(frozen=True, slots=True)
class GoalFlow:
    """A flow that meets a new goal, and all that it shows.

    The flow is named after ``goal``, or after ``use``: the kind of client of a service that sends it.
    """

    goal: Goal
    rule: Rule
    steps: Steps
    goals: FlowGoals
    use: str | None = None


@dataclass(slots=True)
class Search:
    """One search through one ruleset on one node. The same seed finds the same flows."""

    job: Job
    seed: int
    places: Places
    chosen: Selection | None = None
    """The rules to search for; None: all."""
    flows: list[GoalFlow] = field(default_factory=list)
    near: set[Goal] = field(default_factory=set)
    far: set[Goal] = field(default_factory=set)
    barred: set[Goal] = field(default_factory=set)
    """Goals that contradict the tests on every path to their rule."""
    unsimulated: dict[RuleId, str] = field(default_factory=dict)
    """The reason, per rule, why candidates for it could not be simulated."""
    _simulation: Simulation = field(init=False)
    _candidates: Candidates = field(init=False)
    _around: dict[Hook, list[Sighting]] = field(default_factory=dict)
    _changed: dict[Hook, list[Sighting]] = field(default_factory=dict)
    """The sightings in ``_around`` for which :func:`was_changed` holds."""
    _sends: dict[Hook, dict[Send, None]] = field(default_factory=dict)
    """The packets, as sent, of the sightings in ``_around``."""
    _tried: set[Steps] = field(default_factory=set)
    _bursts: dict[TableName, tuple[int, ...]] = field(default_factory=dict)
    """For each table, the numbers of packets that exhaust its ``-m limit`` bursts (burst + 1)."""
    _wanted: Wanted = field(init=False)
    reads_source_ports: bool = field(init=False)
    """True if rules distinguish source ports."""

    def __post_init__(self) -> None:
        ruleset = self.job.ruleset
        self._wanted = Wanted(self.chosen)
        self.reads_source_ports = reads_source_ports(ruleset)
        self._simulation = Simulation(self.job, now=lambda: PLAIN_TIME)
        self._bursts = {table.name: _bursts(table) for table in ruleset.tables}
        draw = random.Random(self.seed)
        self._candidates = Candidates(self.places, draw, ruleset.family, _constants(ruleset))

    def widen(self, chosen: Selection | None) -> None:
        """Make a larger choice of the rules to search for."""
        self.chosen = chosen
        self._wanted = Wanted(chosen)

    def run(self, rules: Collection[Place] | None = None) -> None:
        """Look for every goal, twice: the second round uses the sightings of the first.

        ``rules``: only for goals of these.
        """
        for _ in range(2):
            for table in sorted(self.job.ruleset.tables, key=lambda t: _ORDER.index(t.name)):
                paths = paths_to_rules(table, self.job.ruleset.family, self.chosen)
                for (hook, chain, index), into in paths.items():
                    if rules is not None and (table.name, chain, index) not in rules:
                        continue
                    owner = table.chain(chain)
                    assert owner is not None
                    rule = owner.rules[index]
                    for side in range(HIT, len(rule.tests)):
                        self._look(Goal(table.name, hook, chain, index, side), rule, into)

    def observe(self, steps: Steps) -> FlowGoals | None:
        """Simulate a flow and record its goals and sightings; None if it cannot be simulated."""
        try:
            return self._observe(steps)[0]
        except UnsupportedError:
            return None

    def goals_of(self, steps: Steps, rules: Watched) -> Iterator[FlowGoals]:
        """Yield the goals of some rules that a flow meets, added up over its branches.

        Yields nothing for a flow that the simulator does not support.
        """
        total = FlowGoals()
        for goals, _ in self.branch_goals(steps, rules):
            total.add(goals)
            yield total

    def branch_goals(
        self, steps: Steps, rules: Watched, first: Choices = ()
    ) -> Iterator[tuple[FlowGoals, Choices]]:
        """Yield the goals of some rules that each branch of a flow meets, and the choices of the branch.

        The branch with the choices ``first`` is followed before all others. Yields nothing for a flow that
        the simulator does not support.
        """
        if not self.can_try(steps):
            return
        flow = Flow(id="a packet that was tried", steps=steps)
        try:
            for branch in self._simulation.watch(flow, rules, first):
                yield observe((branch,), self.places, _ALL), branch.choices
        except UnsupportedError:
            return

    def can_try(self, steps: Steps) -> bool:
        """Return whether the simulator supports a flow; it does not support all IPv6 link-local addresses."""
        sent = [step.packet for step in steps if isinstance(step, Send)]
        if not any(self.places.on_link(address) for p in sent for address in (p.src, p.dst)):
            return True
        try:
            self._simulation.simulate(Flow(id="a packet that was tried", steps=steps))
        except UnsupportedError:
            return False
        return True

    def _observe(self, steps: Steps) -> tuple[FlowGoals, Goal | None]:
        """Return the goals that a flow meets, and the first that no earlier flow met (near goals first)."""
        flow = Flow(id="a packet that was tried", steps=steps)
        goals = observe(self._simulation.trace(flow, every_rule=False), self.places, self._wanted)
        near, far = goals.near - self.near, goals.far - self.near - self.far
        self.near |= near
        self.far |= far
        for sighting in goals.sightings:
            kept = self._around.setdefault(sighting.hook, [])
            changed = self._changed.setdefault(sighting.hook, [])
            if len(kept) < _MOST_SIGHTINGS:
                kept.append(sighting)
                self._sends.setdefault(sighting.hook, {})[sighting.sent] = None
                if was_changed(sighting):
                    changed.append(sighting)
        return goals, min(near or far, default=None)

    def candidates(self, tests: Iterable[Test], hook: Hook) -> Iterator[Steps]:
        """Yield flows that may bring a packet that passes the tests to the hook."""
        for constraints in self._constraints(tests, None):
            for steps in self._stream(constraints, hook, times=1):
                if steps is not None:
                    yield steps

    def _look(self, goal: Goal, rule: Rule, into: list[RulePath]) -> None:
        if goal in self.near or goal in self.barred:
            return
        tries = _TRIES_TO_HIT if goal.side == HIT else _TRIES_TO_MISS
        possible = False
        for steps in itertools.islice(self._steps(goal, rule, into), tries):
            possible = True
            if steps is None or steps in self._tried:
                continue
            self._tried.add(steps)
            try:
                goals, new = self._observe(steps)
            except UnsupportedError as e:
                place = (goal.table.value, goal.chain, goal.rule)
                self.unsimulated.setdefault(place, e.refusals[0].reason)
                continue
            shown = goal if goal in goals.near else new
            if shown is not None:
                self.flows.append(GoalFlow(shown, self.rule(shown.place), steps, goals))
            if goal in goals.near:
                return
        if not possible:
            self.barred.add(goal)

    def rule(self, place: Place) -> Rule:
        """Return the rule at a place."""
        table, chain, index = place
        owner = self.job.ruleset.table(table)
        rules = None if owner is None else owner.chain(chain)
        assert rules is not None
        return rules.rules[index]

    def _steps(self, goal: Goal, rule: Rule, into: list[RulePath]) -> Iterator[Steps | None]:
        """Yield candidates for a goal, from each path in turn.

        The first value of a path is None: it shows that its tests do not contradict each other.
        """
        tests = _tests_for(rule, goal.side)
        if tests is None:
            return
        broken = None if goal.side == HIT else rule.tests[goal.side]
        streams: list[Iterator[Steps | None]] = []
        for path in into:
            twice = any(isinstance(t, Recent) and not t.negated for t in (*path.tests, *tests))
            lengths = (2 if twice else 1, *self._bursts[goal.table])
            if isinstance(broken, Limit | Quota) or (
                isinstance(broken, HashLimit | ConnectionLimit) and not broken.above
            ):
                lengths = (broken.burst + 1,) if broken.burst <= _LONGEST_BURST else ()
            # An earlier rule may change the mark; only the simulator can determine this.
            everything = list(self._constraints((*path.tests, *tests), broken))
            if not everything:
                fewer = [t for t in (*path.tests, *tests) if not _may_change(t)]
                everything = list(self._constraints(fewer, broken))
            streams += [
                self._stream(constraints, goal.hook, times=times)
                for times in lengths
                for constraints in everything
            ]
        while streams:
            for stream in list(streams):
                try:
                    yield next(stream)
                except StopIteration:
                    streams.remove(stream)

    def _constraints(self, tests: Iterable[Test], broken: Test | None) -> Iterator[Constraints]:
        family = self.places.family
        sets = {ipset.name: ipset for ipset in self.job.ruleset.sets}
        for chosen in without_sets(tests, sets, family, broken=broken):
            yield from constraints_of(chosen, family)

    def _stream(self, constraints: Constraints, hook: Hook, *, times: int) -> Iterator[Steps | None]:
        yield None
        yield from self._candidates.of(constraints, hook, self._changed.get(hook, ()), times=times)
        yield from self._longer(hook)

    def _longer(self, hook: Hook) -> Iterator[Steps]:
        """Yield packets that reached the hook before, with further steps after them."""
        error = host_unreachable(self.places.family)
        sends = list(self._sends.get(hook, ()))
        for sent in sends[:: max(1, len(sends) // 6)]:
            yield (sent, Reply(), Again())
            yield (sent, error)


def _tests_for(rule: Rule, side: int) -> tuple[Test, ...] | None:
    """Return the tests that must hold for this side of the rule."""
    if side == HIT:
        return rule.tests
    broken = rule.tests[side]
    others = (*rule.tests[:side], *rule.tests[side + 1 :])
    if isinstance(broken, FieldTest | AnyOf):
        return (*others, opposite(broken))
    return others


def _bursts(table: Table) -> tuple[int, ...]:
    tests = (test for chain in table.chains for rule in chain.rules for test in rule.tests)
    limits = (test for test in tests if isinstance(test, Limit | HashLimit | ConnectionLimit | Quota))
    bursts = {test.burst for test in limits}
    return tuple(sorted(burst + 1 for burst in bursts if burst <= _LONGEST_BURST))


def _may_change(test: Test) -> bool:
    return isinstance(test, FieldTest) and test.field in (Field.MARK, Field.CT_MARK)


def _constants(ruleset: Ruleset) -> dict[Field, tuple[int, ...]]:
    """Return the ports and marks in the rules."""
    constants: dict[Field, set[int]] = {}
    for table in ruleset.tables:
        for chain in table.chains:
            for rule in chain.rules:
                for test in rule.tests:
                    if isinstance(test, FieldTest) and test.field in (Field.DPORT, Field.SPORT, Field.MARK):
                        lows = {v.low for v in test.values if isinstance(v, Interval)}
                        constants.setdefault(test.field, set()).update(lows)
    return {f: tuple(sorted(values)) for f, values in constants.items()}
