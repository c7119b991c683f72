from __future__ import annotations

from dataclasses import replace

from backends.model.contract import Job
from backends.model.flow import Send
from harness.corpus.generate.alike.models import Model, models
from harness.corpus.generate.generate import Generation
from harness.corpus.generate.goals import HIT
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from translate.read import read_ruleset


def models_of(shape: Shape) -> list[Model]:
    cluster = draw_cluster(shape)
    rules = read_ruleset(kube_proxy_rules(cluster).encode(), name="rules", family=shape.family)
    generation = Generation.of(Job(rules=rules, node=cluster.node), seed=0)
    made = generation.made
    return list(models(generation.classes.classes, generation.search, made.corpus(), made.uses))


def test_the_kept_flows_show_each_rule_matching() -> None:
    made = models_of(Shape(services=9, endpoints=2, base=False, seed=3))
    assert made
    for model in made:
        hits = {rule for choice in model.kept for rule, _, side in choice.sides if side == HIT}
        assert hits == set(range(len(model.member.places)))
        assert all(choice.sides for choice in model.kept)
        assert len(model.branches) == len(model.kept)


def test_a_packet_of_the_node_knows_the_same_packet_from_outside() -> None:
    made = models_of(Shape(services=9, endpoints=2, base=False, seed=3))
    pairs = [(flow.steps[0], flow.received) for model in made for flow in model.copied]
    known = [(sent, received[0]) for sent, received in pairs if received is not None]
    assert known
    for sent, received in known:
        assert isinstance(sent, Send)
        assert isinstance(received, Send)
        assert sent.entry is None
        assert received.entry is not None
        assert replace(sent.packet, sport=None) == replace(received.packet, sport=None)
