"""Packets that differ in the source port only have the same other bytes."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from backends.model.packet import Packet
from backends.replay.observed import FrameReader
from backends.testbed.tapnode import Sighting
from backends.wire.frames import build, identity
from backends.wire.parsing import parse
from backends.wire.sourceport import divide
from translate.ir import Family, Protocol

PORTS = st.integers(1, 65535)
PACKET = Packet(family=Family.IP, src=1, dst=9, proto=Protocol.TCP, sport=40000, dport=53, payload=b"abc")
FORMS = st.builds(
    lambda family, proto: replace(PACKET, family=family, proto=proto),
    st.sampled_from(Family),
    st.sampled_from([Protocol.TCP, Protocol.UDP]),
)


@given(FORMS, PORTS, PORTS)
def test_the_rest_is_the_same_for_every_port(form: Packet, port: int, other: int) -> None:
    one, two = (divide(build(replace(form, sport=sport))) for sport in (port, other))
    assert one is not None
    assert two is not None
    assert (one.port, two.port) == (port, other)
    assert one.rest == two.rest
    assert (one.port + one.checksum - two.port - two.checksum) % 0xFFFF == 0
    third = divide(build(replace(form, sport=port, dport=54)))
    assert third is not None
    assert third.rest != one.rest


@given(FORMS, st.lists(st.tuples(PORTS, st.booleans()), min_size=1))
def test_a_packet_with_another_port_is_read_as_if_it_were_parsed(
    form: Packet, sent: list[tuple[int, bool]]
) -> None:
    reader = FrameReader()
    for port, bad in sent:
        data = build(replace(form, sport=port, bad_checksum=bad))
        parsed = parse(data)
        (read,) = reader.received([Sighting(data, "eth0", 0)], [])
        assert (read.packet, read.faults) == (parsed.packet, parsed.faults)
        assert read.identity == identity(parsed.packet)


def test_other_packets_are_not_divided() -> None:
    datagram = build(replace(PACKET, proto=Protocol.UDP, payload=b"x" * 12))
    assert divide(datagram[:26] + bytes(2) + datagram[28:]) is None, "no checksum"
    assert divide(build(replace(PACKET, proto=Protocol.SCTP))) is None
