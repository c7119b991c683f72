"""Packets of runs that have a source port and numbers of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.model.packet import Packet
from backends.wire.frames import build, identity
from backends.wire.parsing import parse
from backends.wire.shifting import Shift, key
from translate.ir import Family, Protocol, TcpFlag

BASE = 30000
PACKET = Packet(
    family=Family.IP, src=1, dst=9, proto=Protocol.TCP, sport=BASE, dport=53, seq=7, payload=b"abcdefghij"
)
FORMS = st.builds(
    lambda family, proto, seq, flags, bad: replace(
        PACKET, family=family, proto=proto, seq=seq, ack=seq ^ 0xFFFF, flags=flags, bad_checksum=bad
    ),
    st.sampled_from(Family),
    st.sampled_from([Protocol.TCP, Protocol.UDP]),
    st.sampled_from([0, 7, 0xFFFF, 0x1FFFF, 0xFFFFFFFF]),
    st.sampled_from([TcpFlag.SYN, TcpFlag.SYN | TcpFlag.ACK, TcpFlag.ACK]),
    st.booleans(),
)
PORTS = st.integers(1024, 65535)
NUMBERS = st.integers(0, 63)


def swapped(packet: Packet) -> Packet:
    """Return a packet in the other direction, to the client."""
    return replace(packet, sport=packet.dport, dport=packet.sport)


@given(FORMS, PORTS, NUMBERS, st.booleans())
def test_a_packet_gets_the_port_and_the_number_and_loses_them_again(
    form: Packet, port: int, number: int, reply: bool
) -> None:
    packet = swapped(form) if reply else form
    alone, shift = build(packet), Shift(BASE, port, number)
    sent = shift.sent(alone, reply=reply)
    assert sent is not None
    assert shift.received(sent, reply=reply) == alone
    parsed = parse(sent)
    assert bool(parsed.faults) is form.bad_checksum
    assert (parsed.packet.src, parsed.packet.dst) == (packet.src, packet.dst)
    assert parsed.packet.sport == (packet.sport if reply else port)
    assert parsed.packet.dport == (port if reply else packet.dport)
    if form.proto == Protocol.TCP:
        assert parsed.packet.seq == (packet.seq + number) % 2**32
        assert parsed.packet.payload == packet.payload
        ack = (packet.ack + number) % 2**32 if packet.flags.has(TcpFlag.ACK) else packet.ack
        assert parsed.packet.ack == ack


@given(FORMS, st.lists(st.tuples(PORTS, NUMBERS), min_size=2, max_size=9, unique_by=lambda each: each[1]))
def test_nat_leaves_what_tells_the_runs_apart(form: Packet, runs: list[tuple[int, int]]) -> None:
    keys = set()
    for port, number in runs:
        sent = Shift(BASE, port, number).sent(build(form), reply=False)
        assert sent is not None
        kept = key(sent)
        translated = replace(parse(sent).packet, src=77, dst=88, sport=4711, dport=4712, ttl=3)
        assert key(build(translated)) == kept
        keys.add(kept)
    assert len(keys) == len(runs)


def test_only_the_port_of_the_client_is_changed() -> None:
    same = replace(PACKET, dport=BASE)
    sent = Shift(BASE, 40000, 1).sent(build(same), reply=False)
    assert sent is not None
    assert (parse(sent).packet.sport, parse(sent).packet.dport) == (40000, BASE)
    translated = build(replace(parse(sent).packet, sport=4711, dport=40000))
    alone = Shift(BASE, 40000, 1).received(translated, reply=False)
    assert alone is not None
    assert (parse(alone).packet.sport, parse(alone).packet.dport) == (4711, 40000)
    assert identity(parse(alone).packet) == identity(PACKET)


@pytest.mark.parametrize("reply", [False, True])
def test_a_port_that_nat_chose_is_not_taken_for_the_port_of_the_flow(*, reply: bool) -> None:
    picked = replace(PACKET, dport=BASE, sport=53) if reply else PACKET
    assert Shift(BASE, 40000, 1).received(build(picked), reply=reply) is None
    assert Shift(BASE, BASE, 0).received(build(picked), reply=reply) == build(picked)


def test_no_udp_checksum_stays_none() -> None:
    packet = replace(PACKET, proto=Protocol.UDP)
    data = bytearray(build(packet))
    data[26:28] = bytes(2)
    sent = Shift(BASE, 40000, 3).sent(bytes(data), reply=False)
    assert sent is not None
    assert sent[26:28] == bytes(2)


@pytest.mark.parametrize(
    "other",
    [replace(PACKET, proto=Protocol.SCTP), replace(PACKET, proto=Protocol.UDP, payload=b"short")],
)
def test_other_packets_have_no_key(other: Packet) -> None:
    assert key(build(other)) is None
    assert Shift(BASE, 40000, 3).sent(build(other), reply=False) is None
