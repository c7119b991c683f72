"""Flows made from the elements of ipsets: members, and what one field keeps from being one."""

from __future__ import annotations

import pytest

from backends.model.contract import Job
from backends.model.node import node_from_json
from backends.simulator import RuleVisited, trace
from harness.corpus.generate import GeneratedCorpus, generate_corpus
from harness.corpus.generate.members import without_sets
from translate.ir import Family, Field, FieldTest, Interval, Ruleset, SetTest
from translate.read import read_ipsets, read_ruleset, with_sets

NODE = node_from_json(
    """{"interfaces": {"eth0": ["192.0.2.2/24"], "pod0": ["10.1.0.1/24"]},
        "routes": [{"dst": "default", "via": "192.0.2.1", "dev": "eth0"}]}""",
    name="node",
)
SETS = """\
create WEB hash:ip,port,net family inet
add WEB 10.1.0.9,tcp:80,198.51.100.0/24
add WEB 10.1.0.10,udp:53,198.51.100.128/25
"""
RULES = (
    "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n"
    "-A FORWARD -m set --match-set WEB dst,dst,src -j DROP\nCOMMIT\n"
)


@pytest.fixture(scope="module")
def rules() -> Ruleset:
    return with_sets(read_ruleset(RULES.encode(), name="rules"), read_ipsets(SETS.encode(), name="sets"))


@pytest.fixture(scope="module")
def made(rules: Ruleset) -> GeneratedCorpus:
    return generate_corpus(Job(rules=rules, node=NODE), seed=0)


def matched(rules: Ruleset, made: GeneratedCorpus) -> dict[str, bool]:
    found = {}
    for flow in made.flows:
        events = [
            e for b in trace(Job(rules=rules, node=NODE), flow) for step in b.steps for e in step.events
        ]
        found[flow.id] = any(e.matched for e in events if isinstance(e, RuleVisited))
    return found


def test_a_rule_that_asks_a_set_is_hit_and_just_missed(rules: Ruleset, made: GeneratedCorpus) -> None:
    assert not made.coverage.missed
    found = matched(rules, made)
    assert found["line5-forward-hit"]
    assert not found["line5-forward-miss-settest"]


def test_each_element_and_each_field_beside_it(rules: Ruleset, made: GeneratedCorpus) -> None:
    found = {name: hit for name, hit in matched(rules, made).items() if "-element-" in name}
    members = {name for name, hit in found.items() if hit}
    beside = {name.removeprefix("line5-forward-") for name, hit in found.items() if not hit}
    # The first element's first address is what hits the rule already, or comes here once more.
    assert members >= {
        "line5-forward-element-2",
        "line5-forward-last-element-1-ip.saddr",
        "line5-forward-last-element-2-ip.saddr",
    }
    for number in (1, 2):
        assert f"beside-element-{number}-l4.proto" in beside
        for end in ("before", "behind"):
            for field in ("ip.daddr", "l4.dport", "ip.saddr"):
                # 10.1.0.9 and 10.1.0.10 stand beside each other, with other ports.
                assert f"{end}-element-{number}-{field}" in beside


def test_a_set_is_what_its_elements_ask(rules: Ruleset) -> None:
    ((rule, test),) = rules.set_tests()
    sets = {one.name: one for one in rules.sets}
    assert rule.tests == (test,)
    hits = list(without_sets([test], sets, Family.IP))
    assert [len(one) for one in hits] == [4, 4]
    assert FieldTest(field=Field.DPORT, values=(Interval(53, 53),)) in hits[1]
    misses = list(without_sets([], sets, Family.IP, broken=test))
    assert len(misses) == 8
    for miss in misses:
        assert sum(t.negated for t in miss if isinstance(t, FieldTest)) == 1
    no = SetTest(name=test.name, directions=test.directions, negated=True)
    assert list(without_sets([no], sets, Family.IP)) == [()]
    assert list(without_sets([], sets, Family.IP, broken=no)) == hits


@pytest.mark.parametrize("family", [Family.IP6])
def test_a_set_of_the_other_family_has_no_members(rules: Ruleset, family: Family) -> None:
    ((_, test),) = rules.set_tests()
    assert list(without_sets([test], {one.name: one for one in rules.sets}, family)) == []
