"""The fast walk, the indexed trace and the watching one against the plain walk, which visits every rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow
from backends.model.node import node_from_json
from backends.model.outcome import Outcome
from backends.simulator import (
    Event,
    PolicyApplied,
    RulesSkipped,
    RuleVisited,
    Simulation,
    TracedBranch,
    Watched,
)
from backends.simulator.walk import index, indexed
from harness.corpus.cases import read_case
from harness.corpus.random.flows import random_flows
from tests.lab.random.rules import random_rules
from translate.errors import InputError
from translate.ir import Family, Hook, Test
from translate.read import read_ruleset

pytestmark = pytest.mark.usefixtures("every_chain_indexed")

CORPUS = Path(__file__).parents[4] / "corpus"
NODES = {
    family: node_from_json((CORPUS / "rulesets" / file).read_text(), name=file)
    for family, file in ((Family.IP, "kind-node/worker.json"), (Family.IP6, "six/node.json"))
}
KUBE_PROXY = ("kind-worker-near-misses", "affinity-clients", "external-ips", "aws-vpc-cni", "kube-ipvs")


def outcomes_of(branches: tuple[TracedBranch, ...]) -> dict[tuple[Outcome, ...], Fraction]:
    shares: dict[tuple[Outcome, ...], Fraction] = {}
    for branch in branches:
        outcomes = tuple(s.outcome for s in branch.steps if s.outcome is not None)
        shares[outcomes] = shares.get(outcomes, Fraction(0)) + branch.probability
    return shares


def events_of(branches: tuple[TracedBranch, ...]) -> list[object]:
    """All events; visited and skipped rules as their position and that of the test that fails."""
    return [told for b in branches for s in b.steps for event in s.events for told in _told(event)]


def _told(event: Event) -> Iterator[object]:
    match event:
        case RuleVisited(failed=failed):
            side = next((i for i, test in enumerate(event.rule.tests) if test is failed), None)
            yield event.table, event.hook, event.chain, event.index, side, event.mark, event.answer
        case RulesSkipped():
            sides = {place + 1: side for rules, side in event.failed for place in rules.positions}
            for number in range(event.first, event.last + 1):
                place = event.table, event.hook, event.chain, number
                yield *place, sides[number], event.mark, event.answer
        case _:
            yield event


def differences(job: Job, flows: Iterator[Flow] | tuple[Flow, ...]) -> Iterator[str]:
    simulation = Simulation(job)
    for turn, flow in enumerate(flows):
        with suppress(InputError):  # more branches than are followed
            plain = simulation.trace(flow)
            fast = {b.outcomes: b.probability for b in simulation.simulate(flow).branches}
            if fast != outcomes_of(plain):
                yield f"{flow.id}: the fast walk has other outcomes"
            if events_of(simulation.trace(flow, every_rule=False)) != events_of(plain):
                yield f"{flow.id}: the indexed trace has other events"
            for watched in _watched(job, turn):
                if _visits(simulation.watch(flow, watched)) != _visits(plain, watched):
                    yield f"{flow.id}: the walk that watches some rules has other visits of them"
            if len(flow.steps) > 1:
                watching = tuple(simulation.watch(flow, _third(job)))
                visits = [e for e in events_of(plain) if not isinstance(e, tuple) or e[3] % 3 == 1]
                visits = [e for e in visits if not isinstance(e, PolicyApplied)]
                if events_of(watching) != visits or outcomes_of(watching) != outcomes_of(plain):
                    yield f"{flow.id}: the walk that watches some rules has other events"
                # Another flow is watched meanwhile, for no rule.
                first, nothing = watching[-1].choices, simulation.watch(flow, {})
                turns = zip(simulation.watch(flow, _third(job), first), nothing, strict=True)
                branches = [branch for branch, _ in turns]
                if branches[0] != watching[-1] or set(branches) != set(watching):
                    yield f"{flow.id}: another branch first, or another flow between, changes the branches"


def _visits(branches: Iterable[TracedBranch], watched: Watched | None = None) -> set[object]:
    """The visits of rules by packets of the flow, or of those that are watched."""
    events = events_of(tuple(branches))
    visits: set[Any] = {event for event in events if isinstance(event, tuple) and not event[-1]}
    if watched is None:
        return visits
    return {v for v in visits if v[3] - 1 in watched.get((v[0], v[2]), ())}


def _watched(job: Job, turn: int) -> Iterator[Watched]:
    """Yield every third rule of each chain, and all rules of one of the built-in chains."""
    third = _third(job)
    yield third
    bases = [key for key in third if key[1] in set(Hook)]
    if bases:
        table, name = bases[turn % len(bases)]
        chain = job.ruleset.table(table).chain(name)
        yield {(table, name): frozenset(range(len(chain.rules)))}


def _third(job: Job) -> Watched:
    """Every third rule of each chain."""
    return {
        (table.name, chain.name): frozenset(range(0, len(chain.rules), 3))
        for table in job.ruleset.tables
        for chain in table.chains
    }


def random_differences(seed: int, family: Family) -> list[str]:
    ruleset = read_ruleset(random_rules(seed, family).encode(), name=f"seed {seed}", family=family)
    flows = [
        Flow(id=flow.id, steps=flow.steps[:2])  # each packet multiplies the branches
        for flow in random_flows(ruleset, NODES[family], seed=seed, count=6, truncating=True)
    ]
    return list(differences(Job(rules=ruleset, node=NODES[family]), tuple(flows)))


@pytest.mark.parametrize("family", Family)
def test_random_rulesets(family: Family) -> None:
    assert [d for seed in range(20) for d in random_differences(seed, family)] == []


@pytest.mark.parametrize("name", [*(f"cases/{n}" for n in KUBE_PROXY), "cases6/kube-proxy"])
def test_rulesets_of_kube_proxy(name: str) -> None:
    case = read_case(CORPUS / name)
    assert list(differences(Job(rules=case.ruleset, node=case.node), case.flows[:40])) == []


def test_a_series_that_is_not_visited_is_one_event() -> None:
    case = read_case(CORPUS / "cases/external-ips")
    simulation = Simulation(Job(rules=case.ruleset, node=case.node))
    plain, some = (
        [e for f in case.flows for b in simulation.trace(f, every_rule=r) for s in b.steps for e in s.events]
        for r in (True, False)
    )
    assert any(isinstance(e, RulesSkipped) and e.last > e.first for e in some)
    assert len(some) < len(plain)


def _forgets_the_last(real: Callable) -> Callable:
    def candidates(self, view):
        return list(real(self, view))[:-1]

    return candidates


def _fails_where_it_is_filed(real: Callable) -> Callable:
    return lambda self, chain, rules, view: rules.side


@pytest.mark.parametrize(
    ("owner", "name", "planted"),
    [
        (index.ChainIndex, "candidates", _forgets_the_last),
        (indexed.IndexedWalk, "_failed", _fails_where_it_is_filed),
    ],
)
def test_a_fault_is_seen(owner: type, name: str, planted: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, name, planted(getattr(owner, name)))
    with suppress(KeyError):  # a rule that is skipped without being in a file
        assert any(random_differences(seed, Family.IP) for seed in range(40))


def test_the_tests_of_a_group_are_those_of_its_rules() -> None:
    case = read_case(CORPUS / "cases/external-ips")
    for table in case.ruleset.tables:
        for chain in table.chains:
            made = index.index_of(chain.rules)
            for rules in () if made is None else made.alike:
                for place in rules.positions:
                    tests: tuple[Test, ...] = chain.rules[place].tests
                    assert (*rules.before, tests[rules.side], *rules.behind) == tests
