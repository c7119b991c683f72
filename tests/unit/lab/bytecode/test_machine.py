"""Rules run as the kernel runs them, where that is not plain from the instruction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.lab.bytecode.effects import Count, Nat
from tests.lab.bytecode.instructions import (
    Byteorder,
    Compare,
    Constant,
    Decide,
    Instruction,
    LoadCt,
    LoadMeta,
    LoadPayload,
    LookUp,
    Range,
    Verdict,
)
from tests.lab.bytecode.listing import Contents, Listing
from tests.lab.bytecode.machine import Names, run
from tests.lab.bytecode.samples import Sample, State
from translate.ir import ConnectionState, Family, Field

NAMES = Names(
    chains={"called": "filter/called"},
    counters={"k": "k"},
    limits={},
    over=frozenset(),
    hashed={},
    sets={},
    lists=(),
)
COUNT = Count("k")


def sample(**values: int | str) -> Sample:
    usual: dict[Field, int | str] = dict.fromkeys(Field, 0)
    usual |= {Field.IIF: "eth0", Field.OIF: "", Field.CT_STATE: ConnectionState.NEW, Field.L4PROTO: 6}
    return Sample(family=Family.IP, values={**usual, **{Field[k]: v for k, v in values.items()}})


def done(
    packet: Sample, *rules: Sequence[Instruction], sets: dict[int, Contents] | None = None
) -> list[object]:
    """Return the effects of a chain's rules, in order, by the first word of each event."""
    state = State(packet)
    chains: dict[str, list[tuple[Instruction, ...]]] = {"c": [tuple(rule) for rule in rules]}
    chains["aside"] = [(Decide(Verdict("return")),)]
    run(Listing(rules=chains, sets=sets or {}), "c", state, NAMES)
    return [event[0] for event in state.events]


def test_a_rule_that_does_not_match_is_left_at_once() -> None:
    port = (LoadPayload("transport", 2, 2, 1), Compare("eq", 1, bytes([0, 80])), COUNT)
    assert done(sample(DPORT=80), port) == ["count"]
    assert done(sample(DPORT=81), port) == []


@pytest.mark.parametrize(
    ("packet", "load"),
    [
        (sample(FRAGMENT=1), LoadPayload("transport", 0, 3, 1)),
        (sample(FRAGMENT=1), LoadPayload("transport", 1, 2, 1)),
        (sample(CT_STATE=ConnectionState.UNTRACKED), LoadCt("mark", None, 1)),
        (sample(), LoadMeta("iifkind", 1)),  # a network card has no kind
    ],
)
def test_what_is_not_there_ends_the_rule(packet: Sample, load: Instruction) -> None:
    assert done(packet, (load, COUNT)) == []


def test_a_fast_load_reads_a_later_fragment() -> None:
    port = (LoadPayload("transport", 2, 2, 1), Compare("eq", 1, bytes([0, 80])), COUNT)
    assert done(sample(FRAGMENT=1, DPORT=80), port) == ["count"]
    label = replace(sample(FRAGMENT=1, DPORT=80), family=Family.IP6)
    version = (LoadPayload("transport", 0, 1, 1), Compare("eq", 1, bytes([0x60])), COUNT)
    assert done(label, port) == ["count"]
    assert done(label, version) == ["count"]


def test_a_shorter_constant_compares_the_first_bytes() -> None:
    rule = (LoadMeta("iifname", 1), Compare("eq", 1, b"eth"), COUNT)
    assert done(sample(IIF="eth7"), rule) == ["count"]
    assert done(sample(IIF="et"), rule) == []


def test_registers_of_four_bytes_are_parts_of_those_of_sixteen() -> None:
    known = Contents("s", 8, interval=False, fields=())
    known.add(bytes([10, 0, 0, 1, 0, 80, 0, 0]), None, None, end=False)
    rule = (
        LoadPayload("network", 12, 4, 1),
        LoadPayload("transport", 2, 2, 9),
        LookUp(3, 1, None, False),
        COUNT,
    )
    assert done(sample(SADDR=0x0A000001, DPORT=80), rule, sets={3: known}) == ["count"]
    assert done(sample(SADDR=0x0A000001, DPORT=81), rule, sets={3: known}) == []


def test_marks_are_ordered_after_they_are_turned() -> None:
    turned = (LoadMeta("mark", 1), Byteorder(1, 1, 4, 4))
    rule = (*turned, Range(False, 1, (1).to_bytes(4, "big"), (256).to_bytes(4, "big")), COUNT)
    assert [done(sample(MARK=mark), rule) for mark in (0, 1, 255, 256, 257)] == [
        [],
        ["count"],
        ["count"],
        ["count"],
        [],
    ]


def test_calls_come_back_and_gotos_do_not() -> None:
    aside, called = Decide(Verdict("jump", "aside")), Decide(Verdict("jump", "called"))
    assert done(sample(), (aside,), (called,), (COUNT,)) == ["call", "count"]
    assert done(sample(), (Decide(Verdict("goto", "called")),), (COUNT,)) == ["call"]
    assert done(sample(), (Decide(Verdict("drop")),), (COUNT,)) == ["drop"]


def test_a_translation_ends_the_table() -> None:
    rule = (Constant(bytes([10, 0, 0, 9]), 1), Nat("dnat", (1, 1), None, 0))
    assert done(sample(), rule, (COUNT,)) == ["dnat"]
