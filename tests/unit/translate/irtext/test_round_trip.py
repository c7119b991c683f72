"""Every Program is read back from its text unchanged, with every origin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lab.examples import examples
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from tests.lab.random.rules import random_rules
from tests.unit.translate.irtext.helpers.anyprogram import ORIGINS, programs
from tests.unit.translate.irtext.helpers.anystatement import (
    FAMILIES,
    TEXT,
    kinds_of_actions,
    kinds_of_tests,
    one_statement,
)
from tests.unit.translate.passes.helpers.rulesets import rulesets
from tests.unit.translate.passes.helpers.services import service_rulesets
from translate.ir import (
    Action,
    Choose,
    Family,
    Lookup,
    LoweredChain,
    Origin,
    Program,
    Ruleset,
    TableName,
    Test,
)
from translate.irtext import parse_program, print_program
from translate.passes import LEVELS, lower
from translate.read import read_ipsets, read_ruleset, with_sets

CORPUS = Path(__file__).resolve().parents[3] / "corpus/rulesets"


def origins(program: Program) -> Iterator[Origin]:
    for ipset in program.sets:
        yield ipset.origin
        yield from (element.origin for element in ipset.elements)
    for chain in program.chains:
        yield chain.origin
        for statement in chain.statements:
            yield statement.origin
            match statement:
                case Lookup():
                    yield from (entry.origin for entry in statement.entries)
                case Choose():
                    yield from (branch.origin for branch in statement.branches)


def comes_back(program: Program) -> None:
    text = print_program(program)
    read = parse_program(text, name="text")
    assert read == program
    assert list(origins(read)) == list(origins(program))
    assert print_program(read) == text


def every_pass(ruleset: Ruleset) -> Iterator[Program]:
    """The Program after each pass of each level, once where passes change nothing."""
    made: list[Program] = []
    for level, steps in LEVELS.items():
        program = lower(ruleset, level=level, after="flatten")
        for step in (None, *steps):
            program = program if step is None else step(program)
            if program not in made:
                made.append(program)
                yield program


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("seed", range(20))
def test_random_rules(seed: int, family: Family) -> None:
    text = random_rules(seed, family)
    for program in every_pass(read_ruleset(text.encode(), name="rules", family=family)):
        comes_back(program)


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/rules.ip*tables-save")), ids=lambda p: p.parent.name)
def test_rules_of_the_corpus(path: Path) -> None:
    ruleset = read_ruleset(path.read_bytes(), name=path.name)
    ipsets = path.parent / "ipset-save"
    if ipsets.exists():
        ruleset = with_sets(ruleset, read_ipsets(ipsets.read_bytes(), name="sets"))
    for program in every_pass(ruleset):
        comes_back(program)


@pytest.mark.parametrize("family", Family)
def test_a_large_cluster(family: Family) -> None:
    text = kube_proxy_rules(draw_cluster(Shape(services=90, endpoints=2, family=family)))
    ruleset = read_ruleset(text.encode(), name="rules", family=family)
    comes_back(lower(ruleset, level=2))
    comes_back(lower(ruleset, level=2, after="prune-2"))


@given(ruleset=st.one_of(rulesets(), service_rulesets()))
@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
def test_rules_that_give_every_pass_something_to_do(ruleset: Ruleset) -> None:
    for program in every_pass(ruleset):
        comes_back(program)


@pytest.mark.parametrize("kind", get_args(Test), ids=lambda kind: kind.__name__)
@given(data=st.data(), family=FAMILIES)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
def test_any_test(kind: type, family: Family, data: st.DataObject) -> None:
    comes_back(one_statement(family, (data.draw(kinds_of_tests(family)[kind]),), ()))


@pytest.mark.parametrize("kind", get_args(Action), ids=lambda kind: kind.__name__)
@given(data=st.data(), family=FAMILIES)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
def test_any_action(kind: type, family: Family, data: st.DataObject) -> None:
    comes_back(one_statement(family, (), (data.draw(kinds_of_actions(family)[kind]),)))


@given(origin=ORIGINS, source=TEXT | st.just("rules"))
@settings(max_examples=examples(150), deadline=None)
def test_any_origin(origin: Origin, source: str) -> None:
    chain = LoweredChain(name="nat/a", table=TableName.NAT, statements=(), origin=origin)
    comes_back(Program(family=Family.IP, chains=(chain,), source=source))


@given(program=programs())
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
def test_any_program(program: Program) -> None:
    comes_back(program)


def test_a_line_of_text_is_one_line_of_the_program() -> None:
    """No name and no rule can begin a line of its own, whatever characters it has."""
    rules = '*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j LOG --log-prefix "a\x0b\x85b # c"\nCOMMIT\n'
    text = print_program(lower(read_ruleset(rules.encode(), name="rules"), level=0))
    assert len(text.splitlines()) == text.count("\n")
    assert re.search(r'log "a\\u\{b\}\\u\{85\}b # c" level 4 +# 3: -A INPUT', text)
