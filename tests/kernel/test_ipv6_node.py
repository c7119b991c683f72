"""A node of IPv6 on a real kernel: what is seen, what the stack says by itself, what is kept quiet."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from backends.iptables.backend import IptablesBackend, IptablesLoader
from backends.model.flow import Again, IcmpError, Reply, Step
from backends.model.node import node_from_json
from backends.model.outcome import Outcome, Verdict
from backends.model.packet import Packet
from backends.replay.session import KernelSession, open_session
from tests.kernel.helpers.availability import require
from translate.errors import MachineError
from translate.ir import Family, Protocol, parse_address

NODE = node_from_json(
    '{"interfaces": {"pod0": ["fd00:10:244::1/64"], "pod1": ["fd00:10:245::1/64"],'
    ' "eth0": ["2001:db8::2/64"]},'
    ' "routes": [{"dst": "::/0", "via": "2001:db8::1", "dev": "eth0"}]}',
    name="node",
)
RULES = """*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -d fd00:10:96::a/128 -p udp -m udp --dport 53 -j DNAT --to-destination [fd00:10:245::5]:53
-A POSTROUTING -o eth0 -j MASQUERADE
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -p tcp -m tcp --dport 98 -j REJECT --reject-with tcp-reset
-A FORWARD -p udp -m udp --dport 99 -j REJECT --reject-with icmp6-adm-prohibited
COMMIT
"""
POD, OUTSIDE, OWN = "fd00:10:244::9", "2001:db8:9::1", "2001:db8::2"


def ip(text: str) -> int:
    return parse_address(Family.IP6, text)


def packet(proto: int, src: str, dst: str, **fields: Any) -> Packet:
    return replace(Packet(family=Family.IP6, src=ip(src), dst=ip(dst), proto=proto), **fields)


def udp(src: str, dst: str, **fields: Any) -> Packet:
    return packet(Protocol.UDP, src, dst, **{"sport": 4000, "dport": 9, **fields})


def tcp(src: str, dst: str, **fields: Any) -> Packet:
    return packet(Protocol.TCP, src, dst, **{"sport": 4000, "dport": 9, **fields})


def echo(src: str, dst: str, **fields: Any) -> Packet:
    return packet(Protocol.ICMPV6, src, dst, **{"icmp_type": 128, "icmp_code": 0, "icmp_id": 7, **fields})


@pytest.fixture(scope="module", params=["iptables-legacy", "iptables-nft"])
def session(request: pytest.FixtureRequest) -> Iterator[KernelSession]:
    require(IptablesBackend(request.param))
    with open_session(NODE, IptablesLoader(request.param, RULES, Family.IP6)) as opened:
        yield opened


def run(session, flows, sent: Packet, entry: str | None, *then: Step) -> tuple[Outcome, ...]:
    return flows.run(session, sent, entry, *then)


def test_translation_and_its_way_back(session, flows):
    there, back, error = run(
        session, flows, udp(POD, "fd00:10:96::a", dport=53), "pod0", Reply(), IcmpError(type=1, code=4)
    )
    assert (there.verdict, there.out, there.dst, there.ttl) == (
        Verdict.FORWARD,
        "pod1",
        ip("fd00:10:245::5"),
        63,
    )
    assert (back.out, back.src, back.dst) == ("pod0", ip("fd00:10:96::a"), ip(POD))
    assert (error.out, error.dst) == ("pod1", ip("fd00:10:245::5"))
    assert error.quoted is not None
    assert (error.quoted.src, error.quoted.dst) == (ip("fd00:10:245::5"), ip(POD))


@pytest.mark.parametrize("sent", [udp(POD, OUTSIDE), tcp(POD, OUTSIDE), echo(POD, OUTSIDE)])
def test_every_protocol_is_masqueraded(session, flows, sent):
    there, back = run(session, flows, sent, "pod0", Reply())
    assert (there.out, there.src, there.snat) == ("eth0", ip(OWN), True)
    assert (back.out, back.dst, back.sport) == ("pod0", ip(POD), 7 if sent.is_icmp else 9)


@pytest.mark.parametrize(
    "sent",
    [
        udp(POD, OWN),
        tcp(POD, OWN),
        echo(POD, OWN),
        packet(99, POD, OWN, payload=b"12345678"),
        packet(Protocol.ICMPV6, POD, OWN, icmp_type=135, icmp_code=0, payload=bytes(16), ttl=255),
    ],
)
def test_delivery_is_seen_with_its_whole_header(session, flows, sent):
    (there,) = run(session, flows, sent, "pod0")
    assert (there.verdict, there.src, there.dst) == (Verdict.LOCAL, ip(POD), ip(OWN))
    assert (there.sport, there.ttl) == (sent.icmp_id if sent.is_icmp else sent.sport, sent.ttl)


def test_the_stack_does_not_close_what_nobody_listens_to(session, flows):
    delivered, answer, again = run(session, flows, tcp(POD, OWN), "pod0", Reply(), Again())
    assert delivered.verdict is again.verdict is Verdict.LOCAL
    assert (answer.verdict, answer.out) == (Verdict.FORWARD, "pod0")


def test_a_reset_of_reject_is_heard(session, flows):
    (there,) = run(session, flows, tcp(POD, OWN, dport=98), "pod0")
    assert (there.verdict, there.reject_with) == (Verdict.REJECT, "tcp-reset")


def test_errors_are_heard_and_not_rationed(session, flows):
    kinds = [run(session, flows, udp(POD, OUTSIDE, dport=99), "pod0")[0].reject_with for _ in range(50)]
    assert kinds == ["icmp6-adm-prohibited"] * 50
    (spent,) = run(session, flows, udp(POD, OUTSIDE, ttl=1), "pod0")
    assert spent.reject_with == "icmp6-3-0"


def test_made_on_the_node(session, flows):
    there, back = run(session, flows, udp(OWN, "fd00:10:245::7", mark=5), None, Reply())
    assert (there.out, there.mark, there.ttl) == ("pod1", 5, 64)
    assert back.verdict is Verdict.LOCAL
    there, back = run(session, flows, udp("::1", "::1"), None, Reply())
    assert there.verdict is back.verdict is Verdict.LOCAL


def test_a_wrong_checksum_reaches_the_node(session, flows):
    (there,) = run(session, flows, echo(POD, OWN, bad_checksum=True), "pod0")
    assert there.verdict is Verdict.LOCAL


def test_the_other_family_is_refused(session, flows):
    four = Packet(family=Family.IP, src=1, dst=2, proto=17, sport=3, dport=4)
    with pytest.raises(MachineError, match="not a packet for rules of ip6"):
        list(session.replay([flows.flow(four, "pod0")]))


def test_no_multicast_listener_report_is_taken_for_a_packet(session, flows):
    time.sleep(1.2)  # the reports of the first second of an interface (RFC 3810, 9.11)
    (there,) = run(session, flows, udp(POD, OUTSIDE, sport=4999), "pod0")
    assert there.verdict is Verdict.FORWARD
