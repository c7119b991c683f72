from __future__ import annotations

from fractions import Fraction

from backends.model.flow import Flow, Reply, Send
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, Verdict
from backends.model.packet import Packet, PortClass
from harness.diff.leftout import with_errors_left_out
from translate.ir import Family

ERROR = "icmp-net-unreachable"
SENT = Outcome(verdict=Verdict.REJECT, reject_with=ERROR)
DROPPED = Outcome(verdict=Verdict.DROP, reject_with=ERROR)
OPEN = Outcome(verdict=Verdict.UNKNOWN, reject_with=ERROR)
PLAIN = Outcome(verdict=Verdict.DROP)
LEFT = Outcome(verdict=Verdict.FORWARD, out="eth0")
THIRD = Fraction(1, 3)

PACKET = Packet(family=Family.IP, src=1, dst=2, proto=17, sport=40000, dport=53)
FLOW = Flow(id="f", steps=(Send(packet=PACKET, entry="pod5"),))
TWO = Flow(id="f", steps=(*FLOW.steps, Reply()))


def result(*paths: tuple[Outcome, ...], odds: tuple[Fraction, ...] = ()) -> FlowResult:
    shares = odds or (Fraction(1, len(paths)),) * len(paths)
    return FlowResult(
        "f", tuple(OutcomeBranch(share, path) for share, path in zip(shares, paths, strict=True))
    )


def counted(expected: FlowResult | None, observed: FlowResult, flow: Flow = FLOW) -> FlowResult:
    return with_errors_left_out(flow, expected, observed)


def test_an_error_left_out_counts_as_sent() -> None:
    for expected in (None, result((SENT,)), result((LEFT,)), result((SENT,), (LEFT,))):
        assert counted(expected, result((OPEN,))) == result((SENT,))


def test_an_error_that_the_rules_drop_is_dropped() -> None:
    for expected in (result((DROPPED,)), result((DROPPED,), (LEFT,))):
        assert counted(expected, result((OPEN,))) == result((DROPPED,))


def test_an_error_that_the_rules_may_drop_counts_as_both() -> None:
    expected = result((DROPPED,), (SENT,), (LEFT,), odds=(Fraction(1, 6), THIRD, Fraction(1, 2)))
    assert counted(expected, result((OPEN,))) == result((DROPPED,), (SENT,), odds=(THIRD, 2 * THIRD))


def test_it_does_not_count_as_a_packet_that_the_rules_drop() -> None:
    assert counted(result((PLAIN,)), result((OPEN,))) == result((SENT,))
    for observed in (PLAIN, DROPPED):
        assert counted(result((SENT,)), result((observed,))) == result((observed,))


def test_only_branches_that_agree_in_the_other_steps_count() -> None:
    expected = result((DROPPED, SENT), (LEFT, DROPPED))
    observed = result((OPEN, OPEN), (LEFT, OPEN))
    assert counted(expected, observed, TWO) == expected


def test_a_picked_port_agrees_with_its_class() -> None:
    masqueraded = Outcome(verdict=Verdict.FORWARD, out="eth0", snat=True, sport=PortClass(1024, 65535))
    picked = Outcome(verdict=Verdict.FORWARD, out="eth0", snat=True, sport=2000)
    expected = result((masqueraded, DROPPED))
    assert counted(expected, result((picked, OPEN)), TWO) == result((picked, DROPPED))


def test_paths_that_become_equal_are_one() -> None:
    joined = counted(result((SENT,), (LEFT,)), result((SENT,), (OPEN,), (LEFT,)))
    assert joined == result((SENT,), (LEFT,), odds=(2 * THIRD, THIRD))


def test_a_result_without_such_errors_is_returned_as_it_is() -> None:
    observed = result((PLAIN,), (DROPPED,), (SENT,), (LEFT,))
    assert counted(None, observed) is observed
