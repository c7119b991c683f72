"""Faults in the constants of one service that no search was made for: a corpus by classes shows them.

The faults are planted in the rules themselves, as a translation would have them that gets one service wrong.
What a corpus in which everything was searched for shows of them, the other one must show.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow
from backends.model.node import Node, node_from_json
from backends.model.outcome import Outcome
from backends.simulator import Simulation
from harness.corpus.generate import generate_corpus
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.alike.classes import Classes
from harness.corpus.generate.alike.groups import Member
from harness.corpus.generate.selection import Place
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from translate.errors import UnsupportedError
from translate.ir import Dnat, Family, FieldTest, Goto, Interval, Jump, Rule, Ruleset
from translate.read import read_ruleset

SHAPES = {
    "external": Shape(services=9, endpoints=1, external_ips=9, base=False, seed=3),
    "internal": Shape(
        family=Family.IP6, services=12, endpoints=2, internal_local=6, without_endpoints=4, base=False, seed=3
    ),
    "node ports": Shape(services=10, endpoints=2, node_ports=10, affinity=10, base=False, seed=3),
    "balancers": Shape(services=18, endpoints=1, load_balancers=18, source_ranges=18, base=False, seed=3),
    "local": Shape(services=12, endpoints=1, node_ports=12, external_local=12, base=False, seed=13),
}
SLOW = ("node ports", "balancers", "local")
FAULTS = 25
"""The faults of a cluster that are planted, drawn from all."""

Results = frozenset[tuple[Outcome, ...]]


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule with what it became; None where it is lost."""

    member: Member
    place: Place
    became: Rule | None

    def plant(self, ruleset: Ruleset) -> Ruleset:
        name, chain, index = self.place
        tables = []
        for table in ruleset.tables:
            if table.name is name:
                chains = [
                    replace(c, rules=(*c.rules[:index], *self._rules(), *c.rules[index + 1 :]))
                    if c.name == chain
                    else c
                    for c in table.chains
                ]
                table = replace(table, chains=tuple(chains))
            tables.append(table)
        return replace(ruleset, tables=tuple(tables))

    def _rules(self) -> tuple[Rule, ...]:
        return () if self.became is None else (self.became,)


def beside(one: Interval) -> Interval:
    """The interval of the same size that is next to one, as a translation with a wrong bit would have it."""
    low = one.low ^ one.size
    return Interval(low, low + one.size - 1)


def wrong_tests(rule: Rule) -> Iterator[Rule]:
    """Yield the rule with one of its tests lost, inverted, or asking for the value beside its own."""
    for at, test in enumerate(rule.tests):
        before, after = rule.tests[:at], rule.tests[at + 1 :]
        yield replace(rule, tests=(*before, *after))
        if not isinstance(test, FieldTest):
            continue
        yield replace(rule, tests=(*before, replace(test, negated=not test.negated), *after))
        values = [v for v in test.values if isinstance(v, Interval)]
        if len(values) == len(test.values) == 1:
            yield replace(rule, tests=(*before, replace(test, values=(beside(values[0]),)), *after))


def wrong_actions(rule: Rule, others: Iterable[Rule]) -> Iterator[Rule]:
    """Yield the rule with another endpoint, or with the call of another service's chain."""
    for at, action in enumerate(rule.actions):
        before, after = rule.actions[:at], rule.actions[at + 1 :]
        match action:
            case Dnat(addresses, ports) if addresses is not None and ports.interval is not None:
                other = (
                    Dnat(beside(addresses), ports),
                    Dnat(addresses, replace(ports, interval=beside(ports.interval))),
                )
                yield from (replace(rule, actions=(*before, one, *after)) for one in other)
            case Jump() | Goto():
                callees = {one.callee for one in others if one.callee not in (None, rule.callee)}
                for callee in sorted(c for c in callees if c is not None)[:1]:
                    yield replace(rule, actions=(*before, replace(action, chain=callee), *after))
            case _:
                pass


def faults(ruleset: Ruleset, members: Iterable[Member]) -> Iterator[Fault]:
    """Yield every fault of these members' rules."""
    chains = {(t.name, c.name): c for t in ruleset.tables for c in t.chains}
    for member in members:
        for place in member.places:
            table, chain, index = place
            rules = chains[table, chain].rules
            rule = rules[index]
            yield Fault(member, place, None)
            for became in (*wrong_tests(rule), *wrong_actions(rule, rules)):
                yield Fault(member, place, became)


def results(simulation: Simulation, flow: Flow) -> Results | None:
    """Return the possible outcomes of a flow; None if the simulator does not support it."""
    try:
        return frozenset(branch.outcomes for branch in simulation.simulate(flow).branches)
    except UnsupportedError:
        return None


class Corpus:
    """The flows of a corpus with what becomes of them."""

    def __init__(self, job: Job, *, exhaustive: bool) -> None:
        self.flows = generate_corpus(job, seed=0, exhaustive=exhaustive).flows
        simulation = Simulation(job)
        self._expected = {flow.id: results(simulation, flow) for flow in self.flows}

    def shows(self, fault: Fault, ruleset: Ruleset, node: Node) -> bool:
        """Return whether a flow has other outcomes with the fault; those to its service are tried first."""
        try:
            simulation = Simulation(Job(rules=fault.plant(ruleset), node=node))
        except UnsupportedError:
            return False
        own = {c.value.low for c in fault.member.constants if isinstance(c.value, Interval)}

        def strange(flow: Flow) -> bool:
            packet = flow.first.packet
            return packet.dst not in own and packet.dport not in own

        flows = sorted(self.flows, key=strange)
        return any(results(simulation, flow) != self._expected[flow.id] for flow in flows)


def check(job: Job, most: int) -> None:
    """Plant so many faults in members that are not searched."""
    ruleset, node = job.ruleset, job.node
    classes = Classes.of(ruleset, Places.of(ruleset, node)).classes
    every = list(faults(ruleset, [member for one in classes for member in one.others]))
    assert len(every) >= most
    few = Corpus(job, exhaustive=False)
    hidden = [f for f in random.Random(1).sample(every, most) if not few.shows(f, ruleset, node)]
    assert len(hidden) < most // 2
    whole = Corpus(job, exhaustive=True)
    assert [fault for fault in hidden if whole.shows(fault, ruleset, node)] == []


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in SHAPES]
)
def test_a_fault_in_one_service_is_shown(name: str) -> None:
    cluster = draw_cluster(SHAPES[name])
    text = kube_proxy_rules(cluster).encode()
    check(Job(rules=read_ruleset(text, name="rules", family=cluster.family), node=cluster.node), FAULTS)


def test_a_fault_behind_which_some_clients_alone_are_served_is_shown() -> None:
    """A packet of another client would not show that the entry does not ask for TCP any more."""
    entries = "".join(
        f"-A PREROUTING -d 198.18.{n}.1/32 -p tcp -m tcp --dport {1000 + 10 * n} -j C{n}\n"
        f"-A C{n} -s 203.0.113.0/28 -j DNAT --to-destination 10.1.{n}.9\n"
        for n in range(7)
    )
    names = "".join(f":C{n} - [0:0]\n" for n in range(7))
    text = f"*nat\n:PREROUTING ACCEPT [0:0]\n{names}{entries}COMMIT\n"
    node = node_from_json(
        """{"interfaces": {"eth0": ["192.0.2.2/24"], "pod0": ["10.1.0.1/16"]},
            "routes": [{"dst": "default", "via": "192.0.2.1", "dev": "eth0"}]}""",
        name="node",
    )
    job = Job(rules=read_ruleset(text.encode(), name="rules"), node=node)
    members = [m for one in Classes.of(job.ruleset, Places.of(job.ruleset, node)).classes for m in one.others]
    few = Corpus(job, exhaustive=False)
    every = list(faults(job.ruleset, members))
    assert len(every) >= 10
    assert [f for f in every if not few.shows(f, job.ruleset, node)] == []
