from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from backends.model.conversation import Arrival, Conversation, Emission
from backends.model.flow import Again, Flow, IcmpError, Reply, Send, Step
from backends.model.packet import Packet
from translate.ir import Family, Protocol, TcpFlag

SYN, ACK, FIN = TcpFlag.SYN, TcpFlag.ACK, TcpFlag.FIN


def packet(proto: int, **fields: Any) -> Packet:
    return replace(Packet(family=Family.IP, src=1, dst=2, proto=proto), **fields)


def through(rewrite: Callable[[Packet], Packet], *steps: Step) -> list[Emission | None]:
    """Play the steps on a path that rewrites what goes out and lets all else pass."""
    conversation = Conversation(Flow(id="x", steps=steps))
    sent = []
    for step in steps:
        assert isinstance(step, Send | Reply | Again | IcmpError)
        emission = conversation.emit(step)
        sent.append(emission)
        if emission is not None:
            forth = emission.entry == "in"
            got = rewrite(emission.packet) if forth else emission.packet
            conversation.arrived(Arrival(got, "out" if forth else "in"))
    return sent


UDP = Send(packet=packet(Protocol.UDP, sport=10, dport=20), entry="in")
TCP = Send(packet=packet(Protocol.TCP, sport=10, dport=20), entry="in")


def test_a_reply_answers_what_came_out_where_it_came_out() -> None:
    _, reply = through(lambda p: replace(p, src=7, sport=70, dst=8, dport=80, ttl=3, mark=9), UDP, Reply())
    assert reply is not None
    got = reply.packet
    assert (reply.entry, got.src, got.sport, got.dst, got.dport) == ("out", 8, 80, 7, 70)
    assert (got.ttl, got.mark) == (64, 0)


def test_a_reply_has_a_right_checksum_whatever_it_answers() -> None:
    bad = Send(packet=replace(UDP.packet, bad_checksum=True), entry="in")
    _, reply, error = through(lambda p: p, bad, Reply(), IcmpError(type=3, code=3))
    assert reply is not None
    assert error is not None
    assert error.packet.quoted is not None
    assert not reply.packet.bad_checksum
    assert not error.packet.quoted.bad_checksum


def test_nothing_is_answered_when_nothing_came_out() -> None:
    conversation = Conversation(Flow(id="x", steps=(UDP,)))
    conversation.emit(UDP)
    assert conversation.emit(Reply()) is None
    assert conversation.emit(IcmpError(type=3, code=3)) is None
    again = conversation.emit(Again())
    assert again is not None
    assert again.entry == "in"


def test_before_a_send_there_is_nothing() -> None:
    conversation = Conversation(Flow(id="x", steps=(UDP,)))
    assert conversation.emit(Again()) is None
    assert conversation.emit(Reply()) is None


def test_tcp_sequence_numbers_follow_what_both_sides_sent() -> None:
    steps = (TCP, Reply(), Again(), Again(flags=FIN | ACK), Reply(), Reply(flags=FIN | ACK))
    emissions = through(lambda p: p, *steps)
    syn, synack, ack, fin, ackfin, lastfin = (e.packet for e in emissions if e is not None)
    assert [p.flags for p in (syn, synack, ack, fin, ackfin)] == [SYN, SYN | ACK, ACK, FIN | ACK, ACK]
    assert synack.ack == syn.seq + 1
    assert (ack.seq, ack.ack) == (syn.seq + 1, synack.seq + 1)
    assert fin.seq == ack.seq
    assert (ackfin.seq, ackfin.ack) == (synack.seq + 1, fin.seq + 1)
    assert lastfin.seq == ackfin.seq


def test_an_icmp_query_is_answered_and_nothing_else_of_icmp() -> None:
    ping = Send(packet=packet(Protocol.ICMP, icmp_type=8, icmp_code=0, icmp_id=5), entry="in")
    _, reply = through(lambda p: p, ping, Reply())
    assert reply is not None
    assert (reply.packet.icmp_type, reply.packet.icmp_id) == (0, 5)
    other = Send(packet=packet(Protocol.ICMP, icmp_type=13, icmp_code=0, icmp_id=5), entry="in")
    assert through(lambda p: p, other, Reply())[1] is None


def test_an_icmp_error_quotes_what_came_out() -> None:
    _, error = through(lambda p: replace(p, dst=8, dport=80), UDP, IcmpError(type=11, code=0, source=99))
    assert error is not None
    quoted = error.packet.quoted
    assert quoted is not None
    assert (error.entry, error.packet.src, error.packet.dst) == ("out", 99, 1)
    assert (quoted.src, quoted.dst, quoted.dport) == (1, 8, 80)


def test_an_error_without_a_source_comes_from_where_the_packet_went() -> None:
    _, error = through(lambda p: replace(p, dst=8), UDP, IcmpError(type=3, code=1))
    assert error is not None
    assert error.packet.src == 8


def test_packets_of_a_flow_are_told_apart_and_the_same_flow_sends_the_same() -> None:
    def play() -> list[bytes]:
        sent = through(lambda p: p, UDP, Again(), Reply(), Again())
        return [e.packet.payload for e in sent if e is not None]

    assert play() == play()
    assert len(set(play())) == 4


@pytest.mark.parametrize("seq", [0xFFFFFFFF, 0x7FFFFFFF])
def test_sequence_numbers_wrap(seq: int) -> None:
    first = Send(packet=replace(TCP.packet, seq=seq), entry="in")
    _, reply, again = through(lambda p: p, first, Reply(), Again())
    assert reply is not None
    assert again is not None
    assert reply.packet.ack == again.packet.seq == (seq + 1) & 0xFFFFFFFF


def test_what_fills_a_gre_packet_is_behind_a_header() -> None:
    plain = Send(packet=packet(47), entry="in")
    keyed = Send(packet=packet(47, payload=bytes.fromhex("2001880b00080007") + b"frame"), entry="in")
    for send, head in ((plain, "00006558"), (keyed, "2001880b00080007")):
        sent = through(lambda p: p, send, Again(), Reply())
        payloads = [one.packet.payload for one in sent if one is not None]
        assert [p[: len(head) // 2].hex() for p in payloads] == [head] * 3
        assert len(set(payloads)) == 3


def test_a_reply_has_a_segment_size_only_where_the_answered_segment_has_one() -> None:
    first = Send(packet=replace(TCP.packet, mss=1000), entry="in")
    _, answer = through(lambda p: p, first, Reply())
    assert answer is not None
    assert answer.packet.mss == 1000
    _, _, later = through(lambda p: p, first, Again(), Reply(flags=SYN | FIN))
    assert later is not None
    assert later.packet.mss is None
