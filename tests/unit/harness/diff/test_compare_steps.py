from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from backends.model.flow import Again, Flow, IcmpError, Pause, Reply, Send, Step
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, QuotedTuple, Verdict
from backends.model.packet import Packet, PortClass
from harness.diff.compare import compare, matching_branches, step_text
from translate.ir import Family, TcpFlag

CLIENT, SERVICE, NODE, POD_A, POD_B = range(10, 15)
PICKED = PortClass(1024, 65535)
SEND = Send(
    packet=Packet(family=Family.IP, src=CLIENT, dst=SERVICE, proto=17, sport=40000, dport=53), entry="eth0"
)


def flow(*steps: Step) -> Flow:
    return Flow(id="f", steps=(SEND, *steps))


def to(pod: int, **changes: object) -> Outcome:
    base = Outcome(
        verdict=Verdict.FORWARD,
        out="pod",
        src=NODE,
        dst=pod,
        sport=PICKED,
        dport=53,
        ttl=63,
        mark=0,
        dnat=True,
        snat=True,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


BACK = Outcome(
    verdict=Verdict.FORWARD,
    out="eth0",
    src=SERVICE,
    dst=CLIENT,
    sport=53,
    dport=40000,
    ttl=63,
    mark=0,
    dnat=True,
    snat=True,
)


def expected(*branches: tuple[Outcome, ...]) -> FlowResult:
    share = Fraction(1, len(branches))
    return FlowResult("f", tuple(OutcomeBranch(share, b) for b in branches))


def observed(*outcomes: Outcome, notes: tuple[str, ...] = ()) -> FlowResult:
    return FlowResult("f", (OutcomeBranch(Fraction(1), outcomes),), notes)


TWO = expected((to(POD_A),), (to(POD_B),))


def test_any_branch_and_any_port_of_the_class_agree() -> None:
    for pod in (POD_A, POD_B):
        for port in (1024, 40001, 65535):
            assert compare(flow(), TWO, observed(to(pod, sport=port))) == ()


@pytest.mark.parametrize(
    ("change", "field", "wanted", "got"),
    [
        ({"sport": 1023}, "sport", "1024-65535", 1023),
        ({"dport": 54}, "dport", 53, 54),
        ({"dst": 99}, "dst", "0.0.0.13", "0.0.0.99"),
        ({"src": 99}, "src", "0.0.0.12", "0.0.0.99"),
        ({"out": "eth0"}, "out", "pod", "eth0"),
        ({"mark": 0x4000}, "mark", 0, 0x4000),
        ({"ttl": 64}, "ttl", 63, 64),
        ({"dnat": False}, "dnat", True, False),
        ({"snat": False}, "snat", True, False),
    ],
)
def test_each_field_is_named(change: dict[str, object], field: str, wanted: object, got: object) -> None:
    (found,) = compare(flow(), TWO, observed(to(POD_A, **({"sport": 2000} | change))))
    assert (found.step, found.field, found.expected, found.observed) == (0, field, wanted, got)


def test_the_closest_branch_is_taken() -> None:
    (found,) = compare(flow(), TWO, observed(to(POD_B, sport=2000, mark=1)))
    assert (found.field, found.branch) == ("mark", 1)


@pytest.mark.parametrize(
    "other", [Outcome(verdict=Verdict.DROP), Outcome(verdict=Verdict.REJECT, reject_with="tcp-reset")]
)
def test_another_verdict_is_one_difference(other: Outcome) -> None:
    (found,) = compare(flow(), TWO, observed(other))
    assert (found.field, found.expected, found.observed) == ("verdict", "forward", str(other.verdict))


def test_another_reject_kind() -> None:
    want = Outcome(verdict=Verdict.REJECT, reject_with="icmp-port-unreachable")
    (found,) = compare(flow(), expected((want,)), observed(replace(want, reject_with="tcp-reset")))
    assert (found.field, found.expected, found.observed) == ("with", "icmp-port-unreachable", "tcp-reset")


def test_notes_are_differences() -> None:
    (found,) = compare(flow(), TWO, observed(to(POD_A, sport=2000), notes=("wrong checksum",)))
    assert (found.field, found.observed) == ("note", "wrong checksum")


def test_a_later_step_is_named() -> None:
    want = expected((to(POD_A), BACK))
    (found,) = compare(
        flow(Reply()), want, observed(to(POD_A, sport=2000), replace(BACK, src=POD_A, snat=False))
    )[:1]
    assert (found.step, found.field) == (1, "src")


def test_pauses_have_no_outcome_but_count_as_steps() -> None:
    want = expected((to(POD_A), BACK))
    found = compare(
        flow(Pause(seconds=1), Reply()), want, observed(to(POD_A, sport=9999), replace(BACK, ttl=1))
    )
    assert [(m.step, m.field) for m in found] == [(2, "ttl")]


def test_too_few_outcomes() -> None:
    found = compare(flow(Reply()), expected((to(POD_A), BACK)), observed(to(POD_A, sport=2000)))
    assert [(m.field, m.expected, m.observed) for m in found] == [("outcomes", 2, 1)]


def test_masquerade_may_pick_the_port_that_was_there() -> None:
    want = expected((to(POD_A, src=CLIENT), replace(BACK, dnat=True)))
    same = to(POD_A, src=CLIENT, sport=40000, snat=False)
    assert compare(flow(Reply()), want, observed(same, replace(BACK, dnat=False))) == ()
    moved = to(POD_A, src=CLIENT, sport=40001, snat=False)
    assert [m.field for m in compare(flow(Reply()), want, observed(moved, BACK))] == ["snat"]


def test_a_picked_port_stays_the_connections() -> None:
    want = expected((to(POD_A), BACK, to(POD_A)))
    steady = observed(to(POD_A, sport=2000), BACK, to(POD_A, sport=2000))
    moved = observed(to(POD_A, sport=2000), BACK, to(POD_A, sport=2001))
    assert compare(flow(Reply(), Again()), want, steady) == ()
    (found,) = compare(flow(Reply(), Again()), want, moved)
    assert (found.step, found.field, found.observed) == (2, "sport", "another one")
    assert compare(flow(Reply(flags=TcpFlag.RST), Again()), want, moved) == ()
    assert compare(flow(Reply(), Pause(seconds=9), Again()), want, moved) == ()


def test_quoted_tuples() -> None:
    quoted = QuotedTuple(CLIENT, SERVICE, 40000, 53)
    want = expected((to(POD_A), replace(BACK, sport=None, dport=None, quoted=quoted)))
    step = IcmpError(type=3, code=3)
    wrong = replace(BACK, sport=None, dport=None, quoted=QuotedTuple(CLIENT, POD_A, 40000, 53))
    right = replace(wrong, quoted=quoted)
    assert compare(flow(step), want, observed(to(POD_A, sport=2000), right)) == ()
    (found,) = compare(flow(step), want, observed(to(POD_A, sport=2000), wrong))
    assert (found.field, found.observed) == ("quoted.dst", "0.0.0.13")


def test_matching_branches() -> None:
    branch = observed(to(POD_B, sport=5000)).branches[0]
    assert matching_branches(flow(), TWO, branch) == (1,)


def test_step_text() -> None:
    assert step_text(flow(Reply()), 0) == "first packet udp 0.0.0.10:40000 > 0.0.0.11:53"
    assert step_text(flow(Reply()), 1) == "reply (step 1)"
