"""IPv6 as bytes: every protocol there and back, spoilt bytes noticed, extension headers passed over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.model.packet import Fragment, Packet
from backends.wire.frames import build, identity
from backends.wire.ipv6header import FLOW_LABEL, unpack_ipv6
from backends.wire.parsing import FrameError, parse
from translate.ir import Family, Protocol, TcpFlag, parse_address

U16 = st.integers(0, 0xFFFF)
U32 = st.integers(0, 0xFFFFFFFF)


def _packet(proto: int, **fields: Any) -> st.SearchStrategy[Packet]:
    return st.builds(
        Packet,
        family=st.just(Family.IP6),
        src=st.integers(0, (1 << 128) - 1),
        dst=st.integers(0, (1 << 128) - 1),
        proto=st.just(proto),
        ttl=st.integers(1, 255),
        payload=st.binary(max_size=60),
        **fields,
    )


PORTS = {"sport": U16, "dport": U16}
TCP = _packet(6, flags=st.integers(0, 63).map(TcpFlag), seq=U32, ack=U32, **PORTS)
UDP = _packet(17, **PORTS)
ECHO = _packet(58, icmp_type=st.sampled_from((128, 129)), icmp_code=st.just(0), icmp_id=U16)
NDP = _packet(58, icmp_type=st.sampled_from((133, 135, 136)), icmp_code=st.just(0))
QUERY = st.one_of(TCP, UDP, ECHO, NDP, _packet(132, **PORTS), _packet(136, **PORTS), _packet(99))


def udp(**fields: Any) -> Packet:
    one = Packet(
        family=Family.IP6,
        src=parse_address(Family.IP6, "2001:db8::1"),
        dst=parse_address(Family.IP6, "2001:db8::2"),
        proto=17,
        sport=1000,
        dport=53,
        payload=b"payload",
    )
    return replace(one, **fields)


@given(QUERY)
def test_there_and_back(packet: Packet):
    parsed = parse(build(packet))
    assert parsed.faults == ()
    assert parsed.packet == packet
    assert identity(parsed.packet) == identity(packet)


@given(st.one_of(TCP, UDP, ECHO), st.sampled_from((1, 2, 3, 4)))
def test_errors_quote_what_they_are_about(inner: Packet, kind: int):
    error = Packet(
        family=Family.IP6, src=inner.dst, dst=inner.src, proto=58, icmp_type=kind, icmp_code=0, quoted=inner
    )
    parsed = parse(build(error))
    assert parsed.faults == ()
    assert parsed.packet == error


@given(st.one_of(TCP, UDP, ECHO, NDP), st.data())
def test_a_flipped_bit_of_the_body_or_an_address_is_noticed(packet: Packet, data: st.DataObject):
    frame = bytearray(build(packet))
    bit = data.draw(st.integers(8 * 8, len(frame) * 8 - 1))
    if packet.proto == 17 and 44 <= bit // 8 < 46:
        return  # the length of UDP is noticed by itself, and is summed twice
    frame[bit // 8] ^= 1 << bit % 8
    assert parse(bytes(frame)).faults != ()


def test_a_spoilt_checksum():
    for packet in (
        udp(bad_checksum=True),
        udp(proto=6, bad_checksum=True),
        udp(proto=58, sport=None, dport=None, icmp_type=128, icmp_code=0, icmp_id=1, bad_checksum=True),
    ):
        assert any("checksum" in fault for fault in parse(build(packet)).faults)


def test_udp_without_a_checksum():
    frame = bytearray(build(udp()))
    frame[46:48] = bytes(2)
    assert parse(bytes(frame)).faults == ("no UDP checksum",)


def test_a_long_packet_is_quoted_up_to_the_least_mtu():
    error = udp(proto=58, sport=None, dport=None, icmp_type=1, icmp_code=4, quoted=udp(payload=bytes(2000)))
    data = build(error)
    assert len(data) == 1280
    assert parse(data).faults == ()


HOP_BY_HOP, ROUTING, FRAGMENT, AH, OPTIONS = 0, 43, 44, 51, 60


def with_headers(packet: Packet, *headers: tuple[int, bytes]) -> bytes:
    """Put extension headers, whose first byte is set here, before the transport header."""
    data = bytearray(build(packet))
    body = bytes(data[40:])
    following = data[6]
    for kind, rest in reversed(headers):
        body = bytes((following,)) + rest + body
        following = kind
    data[6] = following
    data[4:6] = len(body).to_bytes(2, "big")
    return bytes(data[:40]) + body


PLAIN = b"\x00" + bytes(6)  # of length 0, which is eight bytes with the first


@pytest.mark.parametrize(
    "headers",
    [
        [(HOP_BY_HOP, PLAIN)],
        [(OPTIONS, b"\x01" + bytes(14))],
        [(HOP_BY_HOP, PLAIN), (ROUTING, PLAIN), (OPTIONS, PLAIN)],
        [(AH, b"\x04" + bytes(22))],
        [(FRAGMENT, bytes(7))],  # "atomic": all of it
    ],
)
def test_extension_headers_do_not_pass_for_ports(headers):
    parsed = parse(with_headers(udp(), *headers))
    assert parsed.faults == ()
    assert parsed.packet == udp()


def test_fragments_are_named():
    first = with_headers(udp(), (FRAGMENT, b"\0\0\x01\0\0\0\x09"))
    assert parse(first).packet.fragment == Fragment(0, more=True, id=9)
    later = with_headers(udp(), (FRAGMENT, b"\3\x05\x08\0\0\0\x09"))
    assert parse(later).packet.fragment == Fragment(0x508 >> 3, more=False, id=9, reserved=3)
    assert parse(later).packet.sport is None


def test_a_header_that_goes_beyond_the_packet():
    data = with_headers(udp(), (OPTIONS, b"\xff" + bytes(6)))
    assert parse(data).faults == (f"extension headers cut short after {len(data)} bytes",)
    assert parse(data).packet.sport is None


def test_no_packet_at_all():
    for data in (b"\x60" + bytes(38), b"\x60"):
        with pytest.raises(FrameError, match="not an IPv6 packet"):
            parse(data)
    assert unpack_ipv6(b"\x45" + bytes(40)) is None


def test_lengths_that_lie():
    data = build(udp())
    assert any("IP length 55, but 50 bytes" in fault for fault in parse(data[:50]).faults)


def test_the_version_decides_which_icmp_it_is():
    four = Packet(family=Family.IP, src=1, dst=2, proto=Protocol.ICMPV6, payload=b"12345678")
    six = udp(proto=Protocol.ICMP, sport=None, dport=None)
    for packet in (four, six):
        assert parse(build(packet)).packet == packet


def test_scapy_reads_the_same():
    inet6 = pytest.importorskip("scapy.layers.inet6")
    data = build(udp())
    theirs = inet6.IPv6(data)
    assert (theirs.src, theirs.dst, theirs.hlim, theirs.plen) == ("2001:db8::1", "2001:db8::2", 64, 15)
    assert theirs.fl == FLOW_LABEL
    del theirs.plen
    del theirs[inet6.UDP].chksum
    assert bytes(theirs) == data
