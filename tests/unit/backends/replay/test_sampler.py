"""The packets of a sample: what the sampler writes over bytes must be what would have been built."""

from __future__ import annotations

import pytest

from backends.model.packet import Packet
from backends.replay.sampler import _Template
from backends.wire.parsing import parse
from translate.ir import Family, Protocol, TcpFlag

PORTS = [1024, 1025, 4096, 0xBAFF, 65535]


@pytest.mark.parametrize("proto", [Protocol.UDP, Protocol.TCP])
@pytest.mark.parametrize("family", Family)
def test_every_packet_is_right(family: Family, proto: Protocol) -> None:
    packet = Packet(family=family, src=0xA0B0C0D, dst=0xA000001, proto=proto, dport=53, seq=0x12345678)
    template = _Template.of(packet)
    read = [(parse(bytes(data)), bytes(data[template.label])) for data in template.packets(PORTS)]
    assert [p.packet.sport for p, _ in read] == PORTS
    assert [template.sport_of(label) for _, label in read] == PORTS
    assert not any(p.faults for p, _ in read)
    assert {(p.packet.src, p.packet.dst, p.packet.dport, p.packet.flags) for p, _ in read} == {
        (packet.src, packet.dst, 53, TcpFlag.SYN)
    }


def test_an_answer_is_none_of_them() -> None:
    packet = Packet(family=Family.IP, src=1, dst=2, proto=Protocol.TCP, dport=80)
    template = _Template.of(packet)
    (data,) = template.packets([65535])
    assert template.is_of(bytes(data))
    data[33] |= TcpFlag.RST
    assert not template.is_of(bytes(data))
