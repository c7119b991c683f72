"""Faults behind switches: the program has all of them, and none while no switch is turned."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import translate.bpf
from tests.lab.kuberules import draw_cluster, kube_proxy_rules
from tests.lab.mutation.fault import Fault, Place
from tests.lab.mutation.planter import TOGETHER, BpfPlanter
from tests.lab.mutation.rulesets import CLUSTER
from tests.lab.mutation.toggles import can_switch, switched, turned
from translate.ir import Program
from translate.passes import lower
from translate.read import read_ruleset


@pytest.fixture(scope="module")
def program() -> Program:
    text = kube_proxy_rules(draw_cluster(replace(CLUSTER)))
    return lower(read_ruleset(text.encode(), name="cluster"), level=1)


def fault(line: str, after: str | None) -> Fault:
    return Fault(operator="x", place=Place("c", 1, line), after=after)


HEAD = "#define INLINE static __always_inline\n"


def line_of(faults: list[Fault]) -> str:
    text = switched(f"{HEAD.rstrip()}\n{faults[0].place.text}", faults)
    return text.split("\n")[-1]


@pytest.mark.parametrize(
    ("line", "after", "becomes"),
    [
        ("\tif (a && b) {", "\tif (b) {", "\tif ((is_planted(1) ? (b) : (a && b)) != 0) {"),
        ("\t} else if (a) {", "\t} else if (b) {", "\t} else if ((is_planted(1) ? (b) : (a)) != 0) {"),
        (
            "\t\tif ((verdict = c1_x(skb, p)))",
            "\t\tif ((verdict = CONTINUE))",
            "\t\tif ((is_planted(1) ? ((verdict = CONTINUE)) : ((verdict = c1_x(skb, p)))) != 0)",
        ),
        (
            "\treturn DROP;",
            "\treturn ACCEPT;",
            "{ if (is_planted(1)) { return ACCEPT; } else { return DROP; } }",
        ),
        ("\tp->mark = 1;", None, "{ if (is_planted(1)) {  } else { p->mark = 1; } }"),
    ],
)
def test_what_a_line_becomes(line: str, after: str | None, becomes: str) -> None:
    one = fault(line, after)
    assert can_switch(one)
    assert line_of([one]) == becomes


def test_two_faults_of_a_line_have_a_switch_each() -> None:
    both = [fault("\treturn DROP;", "\treturn ACCEPT;"), fault("\treturn DROP;", "\treturn REJECT;")]
    assert line_of(both) == (
        "{ if (is_planted(1)) { return ACCEPT; } else "
        "if (is_planted(2)) { return REJECT; } else { return DROP; } }"
    )


@pytest.mark.parametrize(
    ("line", "after"), [(" *   0x1 : 1 0x2", None), ("\tu32 drawn = 1;", None), ("\tif (a) {", "\tx();")]
)
def test_what_has_no_switch(line: str, after: str | None) -> None:
    assert not can_switch(fault(line, after))


def test_a_planter_turns_switches_and_changes_entries(program: Program) -> None:
    planter = BpfPlanter(program)
    code = [f for f in planter.faults if can_switch(f)]
    entries = [f for f in planter.faults if f.place.text.startswith(" *   ")]
    assert len(code) > 400
    assert len(entries) > 50

    one = planter.planted(code[0], None)
    assert one.together == tuple(code[:TOGETHER])
    assert one.output.text.count("is_planted(") >= TOGETHER
    other = planter.planted(code[1], one)
    (written, deleted) = planter.change(one, other) or ()
    assert (written.name, deleted.name) == ("planted", "planted")
    assert [key for key, _ in written.written] == [(2).to_bytes(4, "little")]
    assert deleted.deleted == ((1).to_bytes(4, "little"),)

    entry = planter.planted(entries[0], other)
    steps = planter.change(other, entry) or ()
    assert {step.name for step in steps} == {entries[0].place.block, "planted"}
    assert planter.change(entry, planter.planted(code[-1], entry)) is None


def test_dividing_ends_with_the_fault_itself(program: Program) -> None:
    planter = BpfPlanter(program)
    (first, *_) = (f for f in planter.faults if can_switch(f))
    sizes = []
    while planter.divide(first):
        sizes.append(len(planter.planted(first, None).together))
    assert sizes == [4, 2, 1, 0]
    assert first.after is not None
    assert first.after in planter.planted(first, None).output.text


def test_nothing_is_turned_at_first(program: Program) -> None:
    output = translate.bpf.emit(program)
    assert turned(output, None).sets[-1].entries == ()
    assert re.search(r"#define MAX_ENTRIES_OF_planted \d+\n", turned(output, 3).source)
