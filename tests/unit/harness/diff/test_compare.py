from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.model.flow import Flow, Send
from backends.model.outcome import (
    Assumption,
    FlowResult,
    Outcome,
    OutcomeBranch,
    QuotedTuple,
    Verdict,
)
from backends.model.packet import Packet, PortClass
from harness.diff.compare import compare, matching_branches
from harness.diff.sampling import runs_needed
from translate.ir import Family

PACKET = Packet(family=Family.IP, src=0x0AF40005, dst=0x0A60000A, proto=17, sport=40000, dport=53)
FLOW = Flow(id="f", steps=(Send(packet=PACKET, entry="pod5"),))
FORWARD = Outcome(
    verdict=Verdict.FORWARD,
    out="dns3",
    src=0x0AF40005,
    dst=0x0AF40003,
    sport=40000,
    dport=53,
    ttl=63,
    mark=0,
    dnat=True,
)
DROP = Outcome(verdict=Verdict.DROP)


def result(*outcomes: Outcome) -> FlowResult:
    share = Fraction(1, len(outcomes))
    return FlowResult("f", tuple(OutcomeBranch(share, (o,)) for o in outcomes))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("out", "dns4"),
        ("src", 1),
        ("dst", 1),
        ("sport", 1),
        ("dport", 54),
        ("ttl", 64),
        ("mark", 0x4000),
        ("dnat", False),
        ("snat", True),
        ("quoted", QuotedTuple(1, 2, 3, 4)),
    ],
)
def test_each_field_by_itself_is_a_difference(field: str, value: object) -> None:
    other = replace(FORWARD, **dict[str, Any]({field: value}))
    for want, have in ((FORWARD, other), (other, FORWARD)):
        assert {m.field.partition(".")[0] for m in compare(FLOW, result(want), result(have))} == {field}


@pytest.mark.parametrize("verdict", [Verdict.LOCAL, Verdict.DROP, Verdict.REJECT, Verdict.UNSENT])
def test_another_verdict_is_one_difference_however_little_the_outcomes_share(verdict: Verdict) -> None:
    other = replace(FORWARD, verdict=Verdict.LOCAL) if verdict is Verdict.LOCAL else Outcome(verdict=verdict)
    for want, have in ((FORWARD, other), (other, FORWARD)):
        (mismatch,) = compare(FLOW, result(want), result(have))
        assert (mismatch.field, mismatch.expected, mismatch.observed) == (
            "verdict",
            want.verdict,
            have.verdict,
        )


def test_a_drop_in_the_middle_of_a_set_is_fine_only_where_the_set_has_it() -> None:
    assert compare(FLOW, result(FORWARD, DROP), result(DROP)) == ()
    assert compare(FLOW, result(FORWARD, replace(FORWARD, out="dns4")), result(DROP))


def test_a_drawn_port_agrees_with_its_class_and_nothing_else() -> None:
    drawn = replace(FORWARD, src=1, sport=PortClass(1024, 65535), snat=True)
    assert compare(FLOW, result(drawn), result(replace(drawn, sport=1024))) == ()
    (mismatch,) = compare(FLOW, result(drawn), result(replace(drawn, sport=1023)))
    assert (mismatch.field, mismatch.expected, mismatch.observed) == ("sport", "1024-65535", 1023)


def test_notes_are_differences() -> None:
    noted = replace(result(FORWARD), notes=("checksum of udp is wrong",))
    assert [m.field for m in compare(FLOW, result(FORWARD), noted)] == ["note"]


OUTCOMES = st.one_of(
    st.sampled_from([DROP, Outcome(verdict=Verdict.UNSENT), FORWARD]),
    st.builds(lambda kind: Outcome(verdict=Verdict.REJECT, reject_with=kind), st.sampled_from("ab")),
    st.builds(
        Outcome,
        verdict=st.sampled_from([Verdict.FORWARD, Verdict.LOCAL]),
        out=st.sampled_from([None, "dns3"]),
        src=st.integers(1, 2),
        dst=st.integers(1, 2),
        sport=st.integers(1, 2),
        ttl=st.integers(63, 64),
        mark=st.integers(0, 1),
        dnat=st.booleans(),
        quoted=st.sampled_from([None, QuotedTuple(1, 2, 3, 4)]),
    ),
)


@given(st.lists(OUTCOMES, min_size=1, max_size=3), OUTCOMES)
def test_silence_means_that_the_outcome_is_in_the_set(expected: list[Outcome], observed: Outcome) -> None:
    same = [i for i, one in enumerate(expected) if one == observed]
    said = compare(FLOW, result(*expected), result(observed))
    assert bool(said) == (not same)
    assert list(matching_branches(FLOW, result(*expected), result(observed).branches[0])) == same


def ways(*odds: Fraction) -> FlowResult:
    outcomes = (replace(FORWARD, dst=POD + n) for n in range(len(odds)))
    branches = zip(odds, outcomes, strict=True)
    return FlowResult("f", tuple(OutcomeBranch(share, (outcome,)) for share, outcome in branches))


def seen(expected: FlowResult, *places: int, runs: int) -> FlowResult:
    shares = [Fraction(1, len(places))] * len(places)
    branches = [replace(expected.branches[n], probability=s) for n, s in zip(places, shares, strict=True)]
    return FlowResult("f", tuple(branches), runs=runs)


MISS = 1e-9
POD = 0x0AF40003
UNEVEN = (Fraction(9, 10), Fraction(1, 10))


def test_a_way_that_is_never_seen_is_a_difference_once_that_is_no_chance() -> None:
    expected = ways(*UNEVEN)
    enough = runs_needed(tuple(sorted(UNEVEN)), MISS)
    (found,) = compare(FLOW, expected, seen(expected, 0, runs=enough), miss=MISS)
    assert (found.step, found.field, found.observed, found.branch) == (0, "path", "never seen", 1)
    assert isinstance(found.expected, dict)
    assert found.expected["dst"] == "10.244.0.4"
    assert compare(FLOW, expected, seen(expected, 0, 1, runs=enough), miss=MISS) == ()
    assert compare(FLOW, expected, seen(expected, 0, runs=enough // 2), miss=MISS) == ()
    assert compare(FLOW, expected, seen(expected, 0, runs=enough)) == (), "only where it is asked"


def test_a_way_that_some_kernels_never_take_is_not_missed() -> None:
    expected = replace(ways(*UNEVEN), guessed=True)
    assert compare(FLOW, expected, seen(expected, 0, runs=500), miss=MISS) == ()


@pytest.mark.parametrize("side", ["expected", "observed"])
def test_where_runs_depend_on_each_other_no_way_is_missed(side: str) -> None:
    expected = ways(*UNEVEN)
    observed = seen(expected, 0, runs=500)
    if side == "expected":
        expected = replace(expected, dependent=True)
    else:
        observed = replace(observed, dependent=True)
    assert compare(FLOW, expected, observed, miss=MISS) == ()


def test_what_went_otherwise_may_be_the_way_that_is_missing() -> None:
    expected = ways(*UNEVEN)
    observed = FlowResult(
        "f",
        (
            replace(expected.branches[0], probability=Fraction(1, 2)),
            OutcomeBranch(Fraction(1, 2), (replace(FORWARD, dst=9),)),
        ),
        runs=500,
    )
    assert [m.field for m in compare(FLOW, expected, observed, miss=MISS)] == ["dst"]


def test_several_ways_that_differ_alike_are_told_once() -> None:
    expected = ways(*UNEVEN)
    marked = [OutcomeBranch(b.probability, (replace(b.outcomes[0], mark=1),)) for b in expected.branches]
    (found,) = compare(FLOW, expected, FlowResult("f", tuple(marked), runs=500), miss=MISS)
    assert (found.field, found.expected, found.observed) == ("mark", 0, 1)


OPEN = Outcome(verdict=Verdict.UNKNOWN, hidden="line 3: -j HMARK is not modelled")
PAIR = Flow(id="f", steps=(*FLOW.steps, *FLOW.steps))


def pair(*outcomes: Outcome) -> FlowResult:
    return FlowResult("f", (OutcomeBranch(Fraction(1), outcomes),))


def test_what_rules_leave_open_agrees_with_everything_from_there_on() -> None:
    for seen in (FORWARD, DROP):
        assert not compare(PAIR, pair(FORWARD, OPEN), pair(FORWARD, seen))
        assert compare(PAIR, pair(FORWARD, OPEN), pair(DROP, seen))


def test_either_answer_of_a_match_that_is_not_modelled_agrees_and_none_is_waited_for() -> None:
    matches = Assumption(line=3, hidden=("-m owner is not modelled",), matches=True)
    ways = (
        OutcomeBranch(Fraction(1), (DROP,), (matches,)),
        OutcomeBranch(Fraction(1), (FORWARD,), (replace(matches, matches=False),)),
    )
    expected = FlowResult("f", ways)
    assert expected.is_open
    for seen in (DROP, FORWARD):
        assert not compare(FLOW, expected, replace(result(seen), runs=100), miss=1e-9)
    assert compare(FLOW, expected, result(replace(FORWARD, ttl=64)))


def test_a_difference_has_its_own_values() -> None:
    """The fields of a difference are looked up by their names; its values are not."""
    for port in (54, 55, 56):
        other = replace(FORWARD, dport=port, dst=port)
        found = [(m.field, m.expected, m.observed) for m in compare(FLOW, result(FORWARD), result(other))]
        assert found == [("dst", "10.244.0.3", f"0.0.0.{port}"), ("dport", 53, port)]
    (lost,) = compare(FLOW, result(FORWARD), result(DROP))
    assert (type(lost.expected), type(lost.observed)) == (str, str), "no enumerations"
