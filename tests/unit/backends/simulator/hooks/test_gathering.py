from __future__ import annotations

import pytest

from backends.model.flow import Again, Reply, Send
from backends.model.outcome import Outcome, Verdict
from backends.model.packet import Fragment

FIRST, LAST = Fragment(0, more=True, id=7), Fragment(185, id=7)
TRACKED = "filter: -A FORWARD -m conntrack --ctstate INVALID -j ACCEPT"
RULES = (
    "raw: -A PREROUTING -f -j MARK --set-mark 1\n"
    "filter: -A FORWARD -p udp -m udp ! --dport 53 -j DROP\n"
    "filter: -A INPUT -j REJECT"
)


def later(lab, dst: str = "10.2.0.5", fragment: Fragment = LAST) -> Send:
    send: Send = lab.udp("10.1.0.5", dst, sport=None, dport=None, fragment=fragment)
    return send


def test_a_later_fragment_has_no_ports(lab) -> None:
    (outcome,) = lab.run(RULES, later(lab))
    assert (outcome.verdict, outcome.mark, outcome.sport, outcome.dport) == (Verdict.FORWARD, 1, None, None)


def test_a_first_fragment_has_ports(lab) -> None:
    (outcome,) = lab.run(RULES, lab.udp("10.1.0.5", "10.2.0.5", fragment=FIRST))
    assert (outcome.verdict, outcome.mark, outcome.dport) == (Verdict.FORWARD, 0, 53)
    (outcome,) = lab.run(RULES, lab.udp("10.1.0.5", "10.2.0.5", dport=54, fragment=FIRST))
    assert outcome.verdict is Verdict.DROP


def test_no_fragment_comes_to_input(lab) -> None:
    for packet in (later(lab, "10.1.0.1"), lab.udp("10.1.0.5", "10.1.0.1", fragment=FIRST)):
        assert lab.run(RULES, packet) == (Outcome(verdict=Verdict.DROP),)
    (whole,) = lab.run(RULES, lab.udp("10.1.0.5", "10.1.0.1"))
    assert whole.verdict is Verdict.REJECT


@pytest.mark.parametrize("fragment", [FIRST, LAST])
def test_conntrack_keeps_a_fragment_before_every_rule(lab, fragment: Fragment) -> None:
    rules = f"raw: -A PREROUTING -j MARK --set-mark 1\n{TRACKED}"
    assert lab.run(rules, later(lab, fragment=fragment)) == (Outcome(verdict=Verdict.DROP),)


def test_two_fragments_of_one_packet_may_be_put_together(lab) -> None:
    first = lab.udp("10.1.0.5", "10.2.0.5", fragment=FIRST)
    (before, second) = lab.run(TRACKED, first, later(lab))
    assert (before.verdict, second.verdict) == (Verdict.DROP, Verdict.UNKNOWN)
    (_, other) = lab.run(TRACKED, first, later(lab, fragment=Fragment(185, id=8)))
    assert other.verdict is Verdict.DROP
    (_, again) = lab.run(TRACKED, first, Again())
    assert again.verdict is Verdict.DROP
    (_, without) = lab.run(RULES, first, later(lab))
    assert without.verdict is Verdict.FORWARD


@pytest.mark.parametrize(
    ("ttl", "fragment", "verdict"),
    [(1, FIRST, Verdict.REJECT), (1, LAST, Verdict.DROP), (2, LAST, Verdict.FORWARD)],
)
def test_an_error_about_a_fragment(lab, ttl: int, fragment: Fragment, verdict: Verdict) -> None:
    (outcome,) = lab.run(RULES, lab.udp("10.1.0.5", "10.2.0.5", ttl=ttl, fragment=fragment))
    assert outcome.verdict is verdict


@pytest.mark.parametrize("kind", ["icmp-port-unreachable", "tcp-reset"])
@pytest.mark.parametrize("fragment", [FIRST, LAST])
def test_reject_answers_no_fragment(lab, kind: str, fragment: Fragment) -> None:
    rules = f"filter: -A FORWARD -p tcp -j REJECT --reject-with {kind}"
    assert lab.run(rules, lab.tcp("10.1.0.5", "10.2.0.5", fragment=fragment)) == (
        Outcome(verdict=Verdict.DROP),
    )
    (whole,) = lab.run(rules, lab.tcp("10.1.0.5", "10.2.0.5"))
    assert whole.reject_with == kind


def test_a_fragment_gets_no_reply(lab) -> None:
    (_, reply) = lab.run(RULES, later(lab), Reply())
    assert reply.verdict is Verdict.UNSENT
