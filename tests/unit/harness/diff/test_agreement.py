from __future__ import annotations

from fractions import Fraction

from backends.model.flow import Flow, Pause, Reply, Send
from backends.model.outcome import Outcome, OutcomeBranch, QuotedTuple, Verdict
from backends.model.packet import Packet, PortClass
from harness.diff.agreement import acting_steps, distance, paired_outcomes, port_agrees, quoted_agrees
from translate.ir import Family

PACKET = Packet(family=Family.IP, src=1, dst=2, proto=17, sport=40000, dport=53)
FLOW = Flow(id="f", steps=(Send(packet=PACKET, entry="pod5"), Pause(seconds=1), Reply()))
UNKNOWN, DROP = Outcome(verdict=Verdict.UNKNOWN), Outcome(verdict=Verdict.DROP)


def branch(*outcomes: Outcome) -> OutcomeBranch:
    return OutcomeBranch(Fraction(1), outcomes)


def test_a_class_of_ports_agrees_with_its_ports_and_with_narrower_classes() -> None:
    ports = PortClass(1024, 65535)
    assert [port_agrees(ports, port) for port in (1024, 65535, 1023, None)] == [True, True, False, False]
    assert port_agrees(ports, PortClass(2000, 3000))
    assert not port_agrees(ports, PortClass(1, 3000))
    assert not port_agrees(5, 6)


def test_quoted_packets_agree_if_their_ports_do() -> None:
    drawn = Outcome(verdict=Verdict.FORWARD, quoted=QuotedTuple(1, 2, PortClass(1024, 65535), 53))
    for quoted, agrees in (
        (QuotedTuple(1, 2, 2000, 53), True),
        (QuotedTuple(1, 3, 2000, 53), False),
        (None, False),
    ):
        assert quoted_agrees(drawn, Outcome(verdict=Verdict.FORWARD, quoted=quoted)) is agrees


def test_steps_after_an_open_outcome_are_not_compared() -> None:
    expected, observed = branch(UNKNOWN, DROP), branch(DROP, DROP)
    assert [step for step, _ in acting_steps(FLOW)] == [0, 2]
    assert paired_outcomes(FLOW, expected, observed) == []
    assert distance(FLOW, expected, observed) == 0
    assert paired_outcomes(FLOW, branch(DROP, UNKNOWN), observed) == [(0, DROP, DROP)]


def test_another_verdict_weighs_more_than_another_mark() -> None:
    sent = Outcome(verdict=Verdict.FORWARD, mark=0)
    marked = distance(FLOW, branch(sent, DROP), branch(Outcome(verdict=Verdict.FORWARD, mark=1), DROP))
    assert 0 < marked < distance(FLOW, branch(sent, DROP), branch(DROP, DROP))
