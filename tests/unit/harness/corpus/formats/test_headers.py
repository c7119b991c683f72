"""Packets whose header or frame has another value, and what they are as bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.model.conversation import Arrival, Conversation
from backends.model.flow import Again, Flow, Reply, Send
from backends.model.node import Interface, Node
from backends.model.packet import Fragment, Packet, Routing
from backends.wire.frames import build
from backends.wire.parsing import parse
from harness.corpus.formats.headers import HEADER_FIELDS, header_value, with_header
from harness.corpus.formats.jsonlines import read_flows, write_flows
from translate.errors import ParseError
from translate.ir import Family, Field, Protocol

NODE = Node((Interface("eth0"), Interface("pod0")))
UDP = Packet(family=Family.IP, src=1, dst=2, proto=Protocol.UDP, sport=3, dport=4)
ICMP = {Family.IP: Protocol.ICMP, Family.IP6: Protocol.ICMPV6}


def packets() -> st.SearchStrategy[Packet]:
    def of(family: Family, proto: int, payload: bytes, tos: int, quoting: bool) -> Packet:
        packet = Packet(family=family, src=1, dst=2, proto=proto, payload=payload, tos=tos)
        if packet.has_ports:
            return replace(packet, sport=3, dport=4)
        kind = (3 if family is Family.IP else 1) if quoting else (8 if family is Family.IP else 128)
        quoted = replace(UDP, family=family, payload=payload) if quoting and packet.is_icmp else None
        return replace(packet, icmp_type=kind, icmp_id=7, quoted=quoted) if packet.is_icmp else packet

    protos = (Protocol.TCP, Protocol.UDP, Protocol.UDPLITE, Protocol.SCTP, 47, 99, None)
    return st.builds(
        lambda family, proto, *rest: of(family, ICMP[family] if proto is None else proto, *rest),
        st.sampled_from(Family),
        st.sampled_from(protos),
        st.binary(max_size=1400),
        st.integers(0, 255),
        st.booleans(),
    )


@given(packets())
def test_a_packet_is_as_long_as_it_says_and_keeps_its_tos(packet: Packet) -> None:
    data = build(packet)
    assert len(data) == packet.length
    parsed = parse(data)
    assert (parsed.packet.tos, parsed.faults) == (packet.tos, ())


@pytest.mark.parametrize("proto", [Protocol.UDP, Protocol.TCP])
def test_zeros_fill_every_packet_of_the_sender_and_no_answer(proto: int) -> None:
    packet = replace(UDP, proto=proto, filled_to=500, tos=184, smac=5, dmac=6)
    talk = Conversation(Flow(id="f", steps=(Send(packet=packet, entry="eth0"), Again())))
    first, again = talk.emit(talk.flow.steps[0]), talk.emit(Again())  # type: ignore[arg-type]  # a Send
    assert first is not None
    assert again is not None
    assert first.packet.length == again.packet.length == 500
    talk.arrived(Arrival(first.packet, "pod0"))
    answer = talk.emit(Reply())
    assert answer is not None
    assert answer.packet.length < 60
    assert (answer.packet.tos, answer.packet.smac, answer.packet.dmac) == (0, None, None)


@pytest.mark.parametrize(
    ("field", "value"),
    [(Field.TTL, 1), (Field.TOS, 0x11), (Field.LENGTH, 1500), (Field.ETHER_SADDR, 9), (Field.PACKET_TYPE, 1)],
)
def test_the_value_that_was_asked_for_is_the_one_that_is_seen(field: Field, value: int) -> None:
    made = with_header(UDP, field, value, "pod0", forwarded=False)
    assert made is not None
    sent = Conversation(Flow(id="f", steps=(Send(packet=made, entry="pod0"),))).emit(
        Send(packet=made, entry="pod0")
    )
    assert sent is not None
    assert header_value(field, sent.packet, "pod0", NODE) == value


def test_values_that_no_packet_can_have() -> None:
    assert with_header(UDP, Field.TTL, 0, "pod0", forwarded=True) is None  # not forwarded at all
    assert with_header(UDP, Field.TTL, 255, "pod0", forwarded=True) is None
    assert with_header(UDP, Field.LENGTH, 20, "pod0", forwarded=False) is None
    assert with_header(UDP, Field.LENGTH, 1501, "pod0", forwarded=False) is None
    assert with_header(UDP, Field.ETHER_SADDR, 9, None, forwarded=False) is None
    assert with_header(UDP, Field.PACKET_TYPE, 3, "pod0", forwarded=False) is None


SIX = replace(UDP, family=Family.IP6)


@pytest.mark.parametrize(
    ("field", "value"), [(Field.ROUTING_TYPE, 9), (Field.ROUTING_LEFT, 255), (Field.ROUTING_LENGTH, 100)]
)
def test_a_routing_header_is_sent_as_it_was_asked_for(field: Field, value: int) -> None:
    made = with_header(SIX, field, value, "pod0", forwarded=True)
    assert made is not None
    assert header_value(field, made, "pod0", NODE) == value
    data = build(made)
    assert len(data) == made.length
    assert (data[6], data[40]) == (43, Protocol.UDP)
    assert {f: data[41:44][n] for n, f in enumerate((Field.ROUTING_LENGTH, Field.ROUTING_TYPE))}.get(
        field, data[43]
    ) == value
    parsed = parse(data)
    assert (parsed.packet.sport, parsed.packet.dport, parsed.faults) == (3, 4, ())


def test_routing_headers_that_no_node_takes_for_itself() -> None:
    assert with_header(SIX, Field.ROUTING_LEFT, 1, "pod0", forwarded=False) is None
    assert with_header(SIX, Field.ROUTING_TYPE, 4, "pod0", forwarded=False) is None
    assert with_header(SIX, Field.ROUTING_TYPE, 4, None, forwarded=False) is not None
    assert with_header(UDP, Field.ROUTING_TYPE, 0, "pod0", forwarded=True) is None
    assert header_value(Field.ROUTING_TYPE, SIX, "pod0", NODE) is None


@pytest.mark.parametrize("units", [0, 1, 31])
def test_headers_with_options_are_sent_as_they_were_asked_for(units: int) -> None:
    made = SIX
    for field in (Field.HOP_LENGTH, Field.DESTINATION_LENGTH):
        with_it = with_header(made, field, units, "pod0", forwarded=False)
        assert with_it is not None
        made = with_it
        assert header_value(field, made, "pod0", NODE) == units
    data, size = build(made), 8 * (units + 1)
    assert len(data) == made.length
    assert (data[6], data[40:42], data[40 + size : 42 + size]) == (0, bytes((60, units)), bytes((17, units)))
    parsed = parse(data)
    assert (parsed.packet.sport, parsed.packet.dport, parsed.faults) == (3, 4, ())


def test_headers_with_options_that_no_packet_has() -> None:
    assert with_header(SIX, Field.HOP_LENGTH, 32, "pod0", forwarded=False) is None
    assert with_header(UDP, Field.HOP_LENGTH, 0, "pod0", forwarded=False) is None
    assert header_value(Field.DESTINATION_LENGTH, SIX, "pod0", NODE) is None


def test_answers_have_no_extension_headers() -> None:
    made = with_header(SIX, Field.ROUTING_TYPE, 0, "pod0", forwarded=True)
    assert made is not None
    made = replace(made, hop_options=1, destination_options=2)
    talk = Conversation(Flow(id="f", steps=(Send(packet=made, entry="pod0"), Reply())))
    talk.emit(Send(packet=made, entry="pod0"))
    talk.arrived(Arrival(made, "eth0"))
    answer = talk.emit(Reply())
    assert answer is not None
    assert answer.packet.routing is None
    assert answer.packet.option_headers == (None, None)


def test_the_default_values_by_interface() -> None:
    seen = {f: header_value(f, UDP, "pod0", NODE) for f in HEADER_FIELDS}
    assert seen[Field.ETHER_SADDR] == 0x020000000202
    assert seen[Field.PACKET_TYPE] == 0
    assert header_value(Field.ETHER_SADDR, UDP, "lo", NODE) is None


LINE = (
    '{"id": "a", "in": "pod0", "src": "10.0.0.1", "dst": "10.0.0.2", "proto": "udp", "sport": 1, "dport": 2'
)


def test_a_corpus_keeps_header_and_frame() -> None:
    text = f'{LINE}, "tos": 17, "length": 900, "smac": "02:00:00:00:00:99", "dmac": "ff:ff:ff:ff:ff:ff"}}\n'
    flows = read_flows(text.encode(), name="flows")
    assert write_flows(flows) == text
    packet = flows[0].first.packet
    assert (packet.tos, packet.filled_to, packet.smac) == (17, 900, 0x020000000099)


def test_a_corpus_keeps_a_routing_header() -> None:
    line = LINE.replace("10.0.0.1", "fd00::1").replace("10.0.0.2", "fd00::2")
    text = f'{line}, "routing": {{"type": 5, "left": 0, "length": 2}}}}\n'
    flows = read_flows(text.encode(), name="flows")
    assert write_flows(flows) == text
    assert flows[0].first.packet.routing == Routing(5, 0, 2)
    with pytest.raises(ParseError, match="in a packet of IPv6"):
        read_flows(f'{LINE}, "routing": {{}}}}\n'.encode(), name="flows")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('"tos": 256', "tos"),
        ('"length": 19', "length"),
        ('"smac": "02:00"', "not a hardware address"),
        ('"in": null, "dmac": "02:00:00:00:00:99"', "has no frame"),
    ],
)
def test_a_corpus_with_values_that_cannot_be(more: str, message: str) -> None:
    line = LINE.replace('"in": "pod0", ', "") if "null" in more else LINE
    with pytest.raises(ParseError, match=message):
        read_flows(f"{line}, {more}}}\n".encode(), name="flows", node=NODE)


@pytest.mark.parametrize(
    ("proto", "field", "start", "end"),
    [
        (50, Field.ESP_SPI, 0, 4),
        (51, Field.AH_SPI, 4, 8),
        (108, Field.IPCOMP_CPI, 2, 4),
    ],
)
def test_an_index_of_ipsec_is_sent_before_the_tag_and_answered_with(
    proto: int, field: Field, start: int, end: int
) -> None:
    plain = replace(UDP, proto=proto, sport=None, dport=None)
    assert header_value(field, plain, "pod0", NODE) == 0
    assert header_value(field, UDP, "pod0", NODE) is None
    assert with_header(UDP, field, 1, "pod0", forwarded=True) is None
    made = with_header(plain, field, 0x1234, "pod0", forwarded=True)
    assert made is not None
    talk = Conversation(Flow(id="f", steps=(Send(packet=made, entry="pod0"), Reply())))
    sent = talk.emit(Send(packet=made, entry="pod0"))
    assert sent is not None
    assert int.from_bytes(build(sent.packet)[20 + start : 20 + end], "big") == 0x1234
    assert sent.packet.payload.endswith(talk.tag())
    talk.arrived(Arrival(sent.packet, "eth0"))
    answer = talk.emit(Reply())
    assert answer is not None
    assert header_value(field, answer.packet, "eth0", NODE) == 0x1234
    assert answer.packet.payload != sent.packet.payload


@pytest.mark.parametrize(
    ("field", "value", "fragment"),
    [
        (Field.FRAGMENT, 1, Fragment(185)),
        (Field.FRAGMENT, 0, None),
        (Field.FRAGMENT_OFFSET, 0, Fragment(0, more=True)),
        (Field.FRAGMENT_OFFSET, 8000, Fragment(8000)),
        (Field.FRAGMENT_MORE, 1, Fragment(185, more=True)),
        (Field.FRAGMENT_ID, 7, Fragment(185, id=7)),
        (Field.FRAGMENT_RESERVED, 255, Fragment(185, reserved=255)),
    ],
)
def test_fields_of_a_fragment(field: Field, value: int, fragment: Fragment | None) -> None:
    made = with_header(SIX, field, value, "pod0", forwarded=True)
    assert made is not None
    assert made.fragment == fragment
    assert header_value(field, made, "pod0", NODE) == value
    assert made.has_ports is (fragment is None or not fragment.offset)
    if field is not Field.FRAGMENT:
        assert with_header(UDP, field, value, "pod0", forwarded=True) is None
    if value:
        assert with_header(SIX, field, value, None, forwarded=True) is None


def test_a_fragment_that_would_be_a_whole_packet() -> None:
    first = with_header(SIX, Field.FRAGMENT_OFFSET, 0, "pod0", forwarded=True)
    assert first is not None
    assert with_header(first, Field.FRAGMENT_MORE, 0, "pod0", forwarded=True) is None
    later = with_header(SIX, Field.FRAGMENT, 1, "pod0", forwarded=True)
    assert later is not None
    assert with_header(later, Field.FRAGMENT_OFFSET, 0, "pod0", forwarded=True) is None
    assert with_header(later, Field.FRAGMENT, 0, "pod0", forwarded=True) is None
    assert with_header(later, Field.FRAGMENT_RESERVED2, 1, "pod0", forwarded=True) is None
