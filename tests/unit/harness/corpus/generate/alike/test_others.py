"""Corpora in which a few services stand for others, against those that treat all alike."""

from __future__ import annotations

import pytest

from backends.model.contract import Job
from backends.model.node import node_from_json
from backends.simulator import Simulation
from harness.corpus.generate import GeneratedCorpus, generate_corpus
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.alike.classes import Classes
from harness.corpus.generate.goals import Wanted, observe
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from translate.ir import Family
from translate.read import read_ruleset

SHAPES = {
    "mixed": Shape(services=12, endpoints=1, without_endpoints=6, base=False, seed=4),
    "ip6": Shape(family=Family.IP6, services=7, endpoints=1, affinity=7, base=False, seed=5),
    "local": Shape(services=9, endpoints=1, node_ports=9, external_local=9, base=False, seed=13),
}


@pytest.fixture(scope="module", params=["mixed", "ip6", pytest.param("local", marks=pytest.mark.slow)])
def job(request: pytest.FixtureRequest) -> Job:
    cluster = draw_cluster(SHAPES[request.param])
    text = kube_proxy_rules(cluster).encode()
    return Job(rules=read_ruleset(text, name="rules", family=cluster.family), node=cluster.node)


def sides(job: Job, made: GeneratedCorpus) -> set[tuple[str, str, int, int]]:
    """Each rule that flows match, and each of its tests that just fails in them, at any hook."""
    simulation, places, wanted = Simulation(job), Places.of(job.ruleset, job.node), Wanted()
    found: set[tuple[str, str, int, int]] = set()
    for flow in made.flows:
        near = observe(simulation.trace(flow, every_rule=False), places, wanted).near
        found |= {(goal.table.value, goal.chain, goal.rule, goal.side) for goal in near}
    return found


def test_what_the_full_corpus_shows_of_each_rule_is_shown(job: Job) -> None:
    classes = Classes.of(job.ruleset, Places.of(job.ruleset, job.node)).classes
    assert sum(len(one.others) for one in classes) >= 1
    few, every = generate_corpus(job, seed=0), generate_corpus(job, seed=0, exhaustive=True)
    assert sides(job, every) <= sides(job, few)
    assert not few.coverage.missed
    assert few.services == every.services
    assert len({flow.id for flow in few.flows}) == len(few.flows)
    assert generate_corpus(job, seed=0).flows == few.flows


NODE = node_from_json(
    """{"interfaces": {"eth0": ["192.0.2.2/24"], "pod0": ["10.1.0.1/16"]},
        "routes": [{"dst": "default", "via": "192.0.2.1", "dev": "eth0"}]}""",
    name="node",
)


def ports(number: int, *before: str) -> Job:
    """Ports that are sent to pods, and rules before them."""
    rules = [
        f"-A PREROUTING -d 192.0.2.2/32 -p tcp -m tcp --dport {1000 + 10 * n}"
        f" -j DNAT --to-destination 10.1.{n}.9:{5000 + 10 * n}"
        for n in range(number)
    ]
    text = "\n".join(("*nat", ":PREROUTING ACCEPT [0:0]", *before, *rules, "COMMIT", ""))
    return Job(rules=read_ruleset(text.encode(), name="rules"), node=NODE)


def test_flows_for_others_grow_by_few() -> None:
    made = [generate_corpus(ports(n), seed=0) for n in (20, 40)]
    assert [m.services for m in made] == [20, 40]
    assert not [r for m in made for r in m.coverage.missed]
    assert len(made[1].flows) - len(made[0].flows) <= 20 * 20


def test_a_member_that_other_rules_treat_differently_is_searched() -> None:
    """Rules before take the packets of some clients to one port."""
    taken = [
        f"-A PREROUTING -s {net} -p tcp -m tcp --dport 1080 -j ACCEPT"
        for net in ("10.1.0.0/16", "198.51.100.0/24")
    ]
    made = generate_corpus(ports(20, *taken), seed=0)
    assert not made.coverage.missed
    assert {flow.id for flow in made.flows} >= {"service-tcp-192.0.2.2-1080-inside"}


def test_a_member_that_no_packet_reaches_is_proven_so() -> None:
    job = ports(20, "-A PREROUTING -p tcp -m tcp --dport 1080 -j ACCEPT")
    made = generate_corpus(job, seed=0)
    assert [one.number for one in made.coverage.unreachable] == [10]
    assert not made.coverage.missed
