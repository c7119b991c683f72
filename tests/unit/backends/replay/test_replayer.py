"""The replayer's conclusions from packets that it sees, on a node with made-up answers.

A real kernel rarely makes the mistakes that must not go unnoticed; this one makes them on demand.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from backends.model.flow import Flow, IcmpError, Pause, Reply, Send
from backends.model.outcome import Verdict
from backends.model.packet import Packet
from backends.testbed.tapnode import Sighting
from backends.wire.frames import build
from backends.wire.parsing import parse
from tests.unit.backends.replay.helpers.fakenode import (
    TCP,
    UDP,
    Forgetful,
    Node,
    icmp,
    out,
    replay,
    replay_all,
)
from translate.errors import MachineError
from translate.ir import Family, TcpFlag


def test_a_sound_packet_has_no_notes():
    (outcome,), notes = replay(Node(lambda p: [out(replace(p, ttl=63), mark=7)]))
    assert (outcome.verdict, outcome.out, outcome.ttl, outcome.mark) == (Verdict.FORWARD, "b", 63, 7)
    assert (outcome.dnat, outcome.snat) == (False, False)
    assert notes == ()


@pytest.mark.parametrize(
    ("change", "dnat", "snat"),
    [
        ({"src": 8}, False, True),
        ({"sport": 8}, False, True),
        ({"dst": 8}, True, False),
        ({"dport": 8}, True, False),
        ({"src": 8, "dport": 8}, True, True),
    ],
)
def test_translation_is_what_differs(change, dnat, snat):
    (outcome,), _ = replay(Node(lambda p: [out(replace(p, **change))]))
    assert (outcome.dnat, outcome.snat) == (dnat, snat)


def test_a_wrong_checksum_is_noted():
    def forget_checksum(packet: Packet) -> list[Sighting]:
        data = bytearray(build(packet))
        data[19] ^= 1  # an address changed, and neither checksum with it
        return [Sighting(bytes(data), "b", 0)]

    (outcome,), notes = replay(Node(forget_checksum))
    assert outcome.dnat
    assert notes == ("step 1: wrong IP header checksum on b", "step 1: wrong UDP checksum on b")


def test_a_checksum_that_was_to_be_wrong_is_not_noted():
    node = Node(lambda p: [out(replace(p, bad_checksum=True))])
    (outcome,), notes = replay(node, packet=replace(UDP, bad_checksum=True))
    assert outcome.verdict is Verdict.FORWARD
    assert notes == ()


def test_nor_is_that_of_a_packet_for_which_the_stack_chose_a_source():
    def choose(packet: Packet) -> list[Sighting]:
        return [out(replace(packet, src=7, bad_checksum=True))]

    (outcome,), notes = replay(Node(choose), entry=None, packet=replace(UDP, src=0))
    assert (outcome.src, notes) == (7, ())


def test_a_timestamp_that_the_stack_answers_is_no_stray():
    asked = Packet(family=Family.IP, src=1, dst=2, proto=1, icmp_type=13, icmp_code=0, icmp_id=5)

    def answer(packet: Packet) -> list[Sighting]:
        told = replace(packet, src=packet.dst, dst=packet.src, icmp_type=14)
        return [out(packet, None), out(told, "a")]

    (outcome,), notes = replay(Node(answer), packet=asked)
    assert (outcome.verdict, notes) == (Verdict.LOCAL, ())


def test_wrong_checksum_in_a_rejection_is_noted():
    def reject(packet: Packet) -> list[Sighting]:
        return [out(replace(icmp(packet, 3, 3), bad_checksum=True), "a")]

    (outcome,), notes = replay(Node(reject))
    assert outcome.reject_with == "icmp-port-unreachable"
    assert notes == ("step 1: wrong ICMP checksum on a, in the answer",)


def test_a_rejection_may_quote_a_checksum_that_was_to_be_wrong():
    def reject(packet: Packet) -> list[Sighting]:
        return [out(icmp(replace(packet, bad_checksum=True), 3, 3), "a")]

    (outcome,), notes = replay(Node(reject), packet=replace(UDP, bad_checksum=True))
    assert outcome.reject_with == "icmp-port-unreachable"
    assert notes == ()


def test_a_rejected_reset_is_no_stray():
    """The RST of REJECT goes through OUTPUT, where a rule may reject it in turn."""

    def reject(packet: Packet) -> list[Sighting]:
        end = packet.seq + len(packet.payload) + 1
        reset = replace(TCP, src=2, dst=1, sport=20, dport=10, ack=end, flags=TcpFlag.RST | TcpFlag.ACK)
        return [out(reset, "a"), out(icmp(reset, 3, 2), "b")]

    (outcome,), notes = replay(Node(reject), packet=TCP)
    assert outcome.reject_with == "tcp-reset"
    assert notes == ()


def test_a_second_copy_is_a_stray():
    (outcome,), notes = replay(Node(lambda p: [out(p), out(p, "c")]))
    assert outcome.out == "b"
    assert notes == ("step 1: stray frame on c: udp 0.0.0.1:10 > 0.0.0.2:20",)


def test_frames_of_somebody_else_are_strays():
    other = replace(UDP, payload=b"other", src=5)
    (outcome,), notes = replay(Node(lambda p: [out(other)]))
    assert outcome.verdict is Verdict.DROP
    assert notes == ("step 1: stray frame on b: udp 0.0.0.5:10 > 0.0.0.2:20",)


def test_an_error_for_another_packet_is_no_rejection():
    (outcome,), notes = replay(Node(lambda p: [out(icmp(replace(p, payload=b"old"), 3, 3), "a")]))
    assert outcome.verdict is Verdict.DROP
    assert len(notes) == 1


def test_garbage_is_noted():
    (outcome,), notes = replay(Node(lambda p: [Sighting(b"garbage", "b", 0)]))
    assert outcome.verdict is Verdict.DROP
    assert "unreadable frame on b" in notes[0]


def test_a_mark_that_was_not_seen_is_noted():
    (outcome,), notes = replay(Node(lambda p: [out(p, mark=None)]))
    assert outcome.mark is None
    assert notes == ("step 1: no mark seen on b",)


def test_leaving_wins_over_an_error():
    (outcome,), notes = replay(Node(lambda p: [out(icmp(p, 3, 3), "a"), out(p)]))
    assert outcome.verdict is Verdict.FORWARD
    assert len(notes) == 1


@pytest.mark.parametrize("code", [2, 3])
def test_the_stack_refusing_what_it_delivered_is_expected(code):
    (outcome,), notes = replay(Node(lambda p: [out(p, None), out(icmp(p, 3, code), "a")]))
    assert outcome.verdict is Verdict.LOCAL
    assert notes == ()


def test_prohibited_after_delivery_is_not_expected():
    (outcome,), notes = replay(Node(lambda p: [out(p, None), out(icmp(p, 3, 13), "a")]))
    assert outcome.verdict is Verdict.LOCAL
    assert len(notes) == 1


def test_what_settles_late_counts():
    (outcome,), _ = replay(Node(lambda p: [], late=lambda p: [out(p, None)]), entry=None)
    assert outcome.verdict is Verdict.LOCAL


@pytest.mark.parametrize(
    ("kind", "code", "expected"), [(3, 0, "icmp-net-unreachable"), (3, 4, "icmp-3-4"), (11, 0, "icmp-11-0")]
)
def test_kinds_of_rejection(kind, code, expected):
    (outcome,), _ = replay(Node(lambda p: [out(icmp(p, kind, code), "a")]))
    assert (outcome.verdict, outcome.reject_with) == (Verdict.REJECT, expected)


def test_a_redirect_is_no_rejection():
    (outcome,), notes = replay(Node(lambda p: [out(icmp(p, 5, 1), "a")]))
    assert outcome.verdict is Verdict.DROP
    assert notes == ()


def reset(packet: Packet, **fields: Any) -> Packet:
    start = replace(packet, src=packet.dst, dst=packet.src, sport=packet.dport, dport=packet.sport)
    return replace(start, flags=TcpFlag.RST | TcpFlag.ACK, seq=0, payload=b"", **fields)


def test_a_reset_must_fit_the_segment():
    (outcome,), _ = replay(Node(lambda p: [out(reset(p, ack=p.seq + 1), "a")]), packet=TCP)
    assert outcome.reject_with == "tcp-reset"
    (outcome,), notes = replay(Node(lambda p: [out(reset(p, ack=p.seq), "a")]), packet=TCP)
    assert outcome.verdict is Verdict.DROP
    assert len(notes) == 1


def test_a_reset_to_an_acknowledgement_takes_its_number():
    packet = replace(TCP, flags=TcpFlag.ACK, ack=77)
    (outcome,), _ = replay(Node(lambda p: [out(replace(reset(p), seq=77), "a")]), packet=packet)
    assert outcome.reject_with == "tcp-reset"
    (outcome,), _ = replay(Node(lambda p: [out(replace(reset(p), seq=78), "a")]), packet=packet)
    assert outcome.verdict is Verdict.DROP


def test_answers_and_pauses():
    node = Node(lambda p: [out(p, "a" if p.src == 2 else "b")])
    node.inject = lambda device, data, **_: node._take(parse(data).packet)  # type: ignore[method-assign]
    outcomes, notes = replay(node, Reply(), Pause(seconds=2.5), IcmpError(type=3, code=3))
    assert [o.verdict for o in outcomes] == [Verdict.FORWARD] * 3
    assert [(p.src, p.dst) for p in node.sent] == [(1, 2), (2, 1), (1, 2)]
    assert outcomes[2].quoted.src == 2
    assert node.slept == 2.5
    assert notes == ()


def test_nothing_out_nothing_answered():
    outcomes, _ = replay(Node(lambda p: []), Reply(), IcmpError(type=3, code=3))
    assert [o.verdict for o in outcomes] == [Verdict.DROP, Verdict.UNSENT, Verdict.UNSENT]


def test_an_unknown_interface_is_an_error():
    with pytest.raises(MachineError, match="no interface 'z'"):
        replay(Node(lambda p: []), entry="z")


@pytest.mark.parametrize("pins", [False, True])
def test_packets_are_sent_from_their_processor_if_rules_test_it(pins):
    node, loader = Node(lambda p: [out(p)]), Forgetful()
    loader.pins = pins
    steps = tuple(Send(packet=replace(UDP, cpu=cpu), entry="a") for cpu in (1, 0))
    replay_all(node, [Flow(id="both", steps=steps)], loader)
    assert node.processors == ([1, 0] if pins else [])
