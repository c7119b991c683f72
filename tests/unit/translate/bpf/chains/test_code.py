"""The needs that generated code declares: variables, parts of the runtime, features and maps."""

from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import program
from translate.bpf import emit
from translate.bpf.chains.actions import action_code
from translate.bpf.chains.code import Code, Condition, Declaration, Feature, Needs, Variable
from translate.bpf.chains.conditions import conditions
from translate.bpf.chains.context import Context
from translate.bpf.chains.ipsets import set_maps
from translate.bpf.chains.statements import statement_code
from translate.bpf.layout.tables import RuntimePart
from translate.ir import (
    Accept,
    Action,
    Apply,
    Branch,
    Choose,
    Entry,
    Family,
    Field,
    Interval,
    IpSet,
    Jump,
    Lookup,
    Masquerade,
    NatPorts,
    NoTrack,
    Nth,
    SetDirection,
    SetTest,
    SetType,
)

CONTEXT = Context(
    family=Family.IP,
    functions={"called": "c0_called"},
    lists={},
    sets=set_maps(
        ["ports"],
        {"ports": IpSet(name="ports", type=SetType.BITMAP_PORT, family=None, elements=())},
        (),
        Family.IP,
    ),
    lookups=4,
    counters=7,
    buckets={},
)
LOOKUP = Lookup(
    fields=(Field.DPORT,), entries=(Entry(key=(Interval.point(80),), actions=(Jump("called"), NoTrack())),)
)
NTH = Nth(every=3, packet=0)


@pytest.mark.parametrize(
    ("action", "needs"),
    [
        (Accept(), Needs()),
        (Jump("called"), Needs(variables=frozenset({Variable.VERDICT}))),
        (NoTrack(), Needs(features=frozenset({Feature.NOTRACK}))),
        (Masquerade(NatPorts()), Needs(features=frozenset({Feature.REUSES_SOURCES}))),
        (Masquerade(NatPorts(fully_random=True)), Needs()),
    ],
)
def test_an_action_declares_its_needs(action: Action, needs: Needs) -> None:
    assert action_code((action,), CONTEXT).needs == needs


def test_a_choice_needs_its_variable_and_those_of_its_branches() -> None:
    branches = (Branch(weight=1 << 30, actions=(Jump("called"),)), Branch(weight=1 << 30, actions=()))
    assert statement_code(Choose(branches=branches), CONTEXT).needs.variables == set(Variable)


def test_a_lookup_needs_its_map_and_what_its_entries_need() -> None:
    code = statement_code(LOOKUP, CONTEXT)
    assert [contents.name for contents in code.needs.maps] == ["lookup_4"]
    assert code.needs.variables == {Variable.VERDICT}
    assert code.needs.features == {Feature.NOTRACK}
    assert CONTEXT.after(code.needs).lookups == 5


def test_tests_need_counters_and_parts_of_the_runtime() -> None:
    in_set = SetTest(name="ports", directions=(SetDirection.DST,))
    condition = conditions((NTH, in_set, NTH), CONTEXT)
    assert condition.text == "count_up(7, 0x3) == 0x0 && in_set_0_ports_dst(p) && count_up(8, 0x3) == 0x0"
    assert condition.needs.parts == {RuntimePart.NTH, RuntimePart.IPSET}
    assert condition.needs.counters == 2
    assert [known.name for known in condition.needs.sets] == ["set_0_ports"]
    assert CONTEXT.after(condition.needs).counters == 9


def test_a_statement_without_code_needs_nothing() -> None:
    assert statement_code(Apply(tests=(NTH,), actions=()), CONTEXT) == Code()


def test_needs_of_several_have_each_declaration_once_and_all_maps() -> None:
    declaration = Declaration(("struct a;",))
    condition = Condition("p->proto", Needs(declarations=(declaration,), counters=1))
    body = Code(("return DROP;",), Needs(declarations=(Declaration(("struct b;",)), declaration), counters=2))
    code = condition.guarding(body)
    assert code.lines == ("if (p->proto) {", "\treturn DROP;", "}")
    assert code.needs.declarations == (declaration, Declaration(("struct b;",)))
    assert code.needs.counters == 3
    assert condition.guarding(Code()) == Code()


@pytest.mark.parametrize(
    ("rule", "macros"),
    [
        ("-A POSTROUTING -j MASQUERADE", ("REUSES_SOURCES 1", "HAS_NOTRACK 0")),
        ("-A POSTROUTING -j MASQUERADE --random-fully", ("REUSES_SOURCES 0", "HAS_NOTRACK 0")),
    ],
)
def test_the_runtime_has_the_features_that_rules_need(rule: str, macros: tuple[str, ...]) -> None:
    source = emit(program("nat", rule)).source
    assert all(f"#define {macro}\n" in source for macro in macros)
    assert "count_up" not in source
