from __future__ import annotations

import pytest

from backends.model.flow import IcmpError, Reply, Send
from backends.model.outcome import Verdict
from translate.ir import TcpFlag

KINDS = (
    "icmp-net-unreachable",
    "icmp-host-unreachable",
    "icmp-proto-unreachable",
    "icmp-port-unreachable",
    "icmp-net-prohibited",
    "icmp-host-prohibited",
    "icmp-admin-prohibited",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hook", ["INPUT", "FORWARD", "OUTPUT"])
def test_every_kind_is_told_at_every_hook(lab, kind: str, hook: str) -> None:
    dst = "10.1.0.1" if hook == "INPUT" else "10.2.0.5"
    step = lab.udp("10.1.0.1" if hook == "OUTPUT" else "10.1.0.5", dst, None if hook == "OUTPUT" else "west")
    (out,) = lab.run(f"filter: -A {hook} -p udp -j REJECT --reject-with {kind}", step)
    assert (out.verdict, out.reject_with) == (Verdict.REJECT, kind)


RESET = "filter: -A FORWARD -p tcp -j REJECT --reject-with tcp-reset"


@pytest.mark.parametrize(
    ("flags", "verdict"),
    [
        (TcpFlag.SYN, Verdict.REJECT),
        (TcpFlag.ACK, Verdict.REJECT),
        (TcpFlag.RST, Verdict.DROP),
        (TcpFlag.RST | TcpFlag.ACK, Verdict.DROP),
    ],
)
def test_a_rst_is_not_reset(lab, flags: TcpFlag, verdict: Verdict) -> None:
    assert lab.run(RESET, lab.tcp("10.1.0.5", "10.2.0.5", flags=flags))[0].verdict is verdict


def test_nothing_is_said_about_a_packet_with_a_wrong_checksum(lab) -> None:
    for rules, step in (
        (RESET, lab.tcp("10.1.0.5", "10.2.0.5", bad_checksum=True)),
        ("filter: -A FORWARD -j REJECT", lab.udp("10.1.0.5", "10.2.0.5", bad_checksum=True)),
    ):
        assert lab.run(rules, step)[0].verdict is Verdict.DROP


def test_icmp_errors_are_not_answered_but_queries_are(lab) -> None:
    rules = "filter: -A FORWARD -p icmp -j REJECT"
    there, error = lab.run(rules, lab.udp("10.1.0.5", "10.2.0.5"), IcmpError(type=3, code=3))
    assert (there.verdict, error.verdict) == (Verdict.FORWARD, Verdict.DROP)
    assert lab.run(rules, lab.icmp("10.1.0.5", "10.2.0.5"))[0].verdict is Verdict.REJECT


def test_an_unknown_protocol_is_answered_only_if_its_bytes_sum_up(lab) -> None:
    rules = "filter: -A FORWARD -j REJECT"
    for payload, verdict in ((b"\x12\x34\xed\xcb", Verdict.REJECT), (b"anything", Verdict.DROP)):
        packet = lab.packet(89, "10.1.0.5", "10.2.0.5", payload=payload)
        assert lab.run(rules, Send(packet=packet, entry="west"))[0].verdict is verdict
    esp = lab.packet(50, "10.1.0.5", "10.2.0.5", payload=b"anything")
    assert lab.run(rules, Send(packet=esp, entry="west"))[0].verdict is Verdict.REJECT


def test_broadcasts_are_not_answered(lab) -> None:
    rules = "filter: -A INPUT -j REJECT"
    assert lab.run(rules, lab.udp("10.1.0.5", "10.1.0.255"))[0].verdict is Verdict.DROP


def test_an_answer_passes_the_rules_itself(lab) -> None:
    rules = "filter: -A FORWARD -j REJECT\nfilter: -A OUTPUT -p icmp -m conntrack --ctstate RELATED -j DROP"
    assert lab.run(rules, lab.udp("10.1.0.5", "10.2.0.5"))[0].verdict is Verdict.DROP


def test_an_answer_to_an_untracked_packet_is_itself_invalid(lab) -> None:
    rules = """
        raw: -A PREROUTING -j CT --notrack
        filter: -A FORWARD -j REJECT
        filter: -A OUTPUT -m conntrack --ctstate INVALID -j DROP
    """
    assert lab.run(rules, lab.udp("10.1.0.5", "10.2.0.5"))[0].verdict is Verdict.DROP


def test_a_spent_ttl_is_told_and_the_ttl_is_spent_before_forward(lab) -> None:
    spent, last = (lab.run("", lab.udp("10.1.0.5", "10.2.0.5", ttl=t))[0] for t in (1, 2))
    assert (spent.verdict, spent.reject_with) == (Verdict.REJECT, "icmp-11-0")
    assert (last.verdict, last.ttl) == (Verdict.FORWARD, 1)


def test_a_local_packet_spends_no_ttl(lab) -> None:
    here, back = lab.run("", lab.udp("10.1.0.5", "10.1.0.1", ttl=1), Reply())
    assert (here.verdict, here.ttl, here.out) == (Verdict.LOCAL, 1, None)
    assert (back.out, back.ttl) == ("west", 64)
