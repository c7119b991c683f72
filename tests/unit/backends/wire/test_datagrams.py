"""Datagrams as numbers and as bytes: the same as packets that are built and parsed with all their fields."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.model.flow import Flow, Pause, Reply, Send
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, Verdict
from backends.model.packet import Packet, PortClass
from backends.wire.datagrams import Datagram, flow_of, number_of, pack, result_of, to_datagram, unpack
from backends.wire.frames import build
from backends.wire.parsing import FrameError, parse
from translate.ir import Family, Protocol

UDP = Packet(family=Family.IP, src=1, dst=2, proto=Protocol.UDP, sport=10, dport=20, ttl=9)
PORTS = st.integers(0, 0xFFFF)
NUMBERS = st.integers(0, 0xFFFFFFFF)


@st.composite
def datagrams(draw: st.DrawFn) -> tuple[Datagram, Family]:
    family = draw(st.sampled_from(Family))
    address = st.integers(0, 2**family.bits - 1)
    src, dst, sport, dport = draw(address), draw(address), draw(PORTS), draw(PORTS)
    return (draw(st.text()), "a", src, dst, sport, dport, draw(st.integers(0, 255))), family


@given(datagrams(), NUMBERS)
def test_it_is_packed_as_the_packet_that_it_stands_for(given, number):
    datagram, family = given
    data = pack(datagram, number, family)
    payload = b"nfpb" + number.to_bytes(4, "big")
    assert data == build(replace(flow_of(datagram, family).first.packet, payload=payload))
    assert not parse(data).faults
    assert unpack(data, family) == (number, *datagram[2:])
    assert number_of(data) == number


@given(datagrams(), st.integers(0), st.integers(1, 255))
def test_a_byte_that_is_changed_is_noticed_where_parsing_would(given, place, change):
    datagram, family = given
    data = bytearray(pack(datagram, 7, family))
    data[place % len(data)] ^= change
    try:
        sound = not parse(bytes(data)).faults
    except FrameError:
        sound = False
    assert sound or unpack(bytes(data), family) is None


@pytest.mark.parametrize("family", Family)
def test_cut_short_or_extended_it_is_none(family):
    data = pack(("f", "a", 1, 2, 3, 4, 64), 7, family)
    for wrong in (data[:-1], data + bytes(1), b"", data[:8]):
        assert unpack(wrong, family) is None
    other = Family.IP6 if family is Family.IP else Family.IP
    assert unpack(data, other) is None
    assert number_of(data[:-1]) is None
    assert number_of(b"nfpb") is None


def test_a_flow_of_one_packet_is_a_datagram():
    flow = Flow(id="f", steps=(Send(packet=UDP, entry="a"),))
    datagram = to_datagram(flow, Family.IP)
    assert datagram == ("f", "a", 1, 2, 10, 20, 9)
    assert flow_of(datagram, Family.IP) == flow
    assert to_datagram(flow, Family.IP6) is None


@pytest.mark.parametrize(
    "steps",
    [
        (),
        (Pause(seconds=1),),
        (Send(packet=UDP, entry=None),),
        (Send(packet=UDP, entry="a"), Reply()),
        (Send(packet=replace(UDP, proto=Protocol.TCP), entry="a"),),
        (Send(packet=replace(UDP, payload=b"p"), entry="a"),),
        (Send(packet=replace(UDP, bad_checksum=True), entry="a"),),
        (Send(packet=replace(UDP, sport=None), entry="a"),),
        (Send(packet=replace(UDP, dport=PortClass(1, 2)), entry="a"),),
    ],
)
def test_any_other_flow_is_none(steps):
    assert to_datagram(Flow(id="f", steps=steps), Family.IP) is None


@pytest.mark.parametrize("out", ["b", None])
def test_what_became_of_it(out):
    outcome = Outcome(
        verdict=Verdict.LOCAL if out is None else Verdict.FORWARD,
        out=out,
        src=1,
        dst=2,
        sport=3,
        dport=4,
        ttl=5,
        mark=6,
        dnat=True,
        snat=False,
    )
    wanted = FlowResult("f", (OutcomeBranch(Fraction(1), (outcome,)),))
    assert result_of(("f", out, 1, 2, 3, 4, 5, 6, True, False)) == wanted
