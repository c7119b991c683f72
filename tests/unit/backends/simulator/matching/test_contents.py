from __future__ import annotations

from dataclasses import replace

import pytest

from backends.model.packet import Packet, PortClass, Routing
from backends.simulator.conntrack.skb import Skb, SocketKind
from backends.simulator.matching.contents import contents
from backends.wire.frames import build
from translate.ir import Family, Protocol

UDP = Packet(
    family=Family.IP, src=0x0A000001, dst=0x0A000002, proto=Protocol.UDP, sport=5, dport=53, payload=b"abc"
)
SIX = replace(UDP, family=Family.IP6)


def unknown(skb: Skb) -> set[int]:
    packet = contents(skb)
    assert len(packet.data) == len(packet.known)
    return {at for at, known in enumerate(packet.known) if not known}


@pytest.mark.parametrize("packet", [UDP, SIX, replace(UDP, proto=Protocol.TCP, mss=1400)])
def test_every_byte_of_a_received_packet_is_known(packet: Packet) -> None:
    skb = Skb(packet, link=1)
    assert contents(skb).data == build(packet)
    assert unknown(skb) == set()


def test_the_kernel_chooses_bytes_of_a_packet_of_the_node() -> None:
    assert unknown(Skb(UDP)) == {4, 5, 10, 11, 26, 27}
    assert unknown(Skb(SIX)) == {46, 47}
    assert unknown(Skb(UDP, socket=SocketKind.KERNEL)) == {4, 5, 10, 11, *range(20, 31)}


def test_ports_that_nat_picks_are_unknown_behind_any_header() -> None:
    picked = replace(
        SIX, sport=PortClass(1, 9), routing=Routing(0, 0, 2), hop_options=0, destination_options=1
    )
    start = 40 + 24 + 8 + 16
    assert unknown(Skb(picked, link=1)) == {start, start + 1, start + 6, start + 7}
    echo = Packet(family=Family.IP, src=1, dst=2, proto=1, icmp_type=8, icmp_id=PortClass(1, 9))
    assert unknown(Skb(echo, link=1)) == {22, 23, 24, 25}
    chunk = replace(UDP, proto=Protocol.SCTP, dport=PortClass(1, 9))
    assert unknown(Skb(chunk, link=1)) == {22, 23, *range(28, 32)}


def test_a_wrong_checksum_is_unknown() -> None:
    assert unknown(Skb(replace(UDP, bad_checksum=True), link=1)) == {26, 27}


def test_a_quoted_packet_is_unknown() -> None:
    error = Packet(family=Family.IP, src=1, dst=2, proto=1, icmp_type=3, icmp_code=1, quoted=UDP)
    assert unknown(Skb(error, link=1)) == {22, 23, *range(28, len(build(error)))}


def test_padding_has_the_place_of_an_option() -> None:
    segment = replace(UDP, proto=Protocol.TCP, payload=b"")
    skb = Skb(segment, link=1, stripped=True)
    assert len(contents(skb).data) == 44
    assert unknown(skb) == set(range(20, 44))
