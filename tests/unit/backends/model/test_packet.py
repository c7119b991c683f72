"""The length and the text of packets."""

from __future__ import annotations

import pytest

from backends.model.packet import Fragment, Packet, Routing
from translate.dataclass import replace
from translate.ir import Family, Protocol

UDP = Packet(family=Family.IP, src=0x0A000001, dst=0x0A000002, proto=Protocol.UDP, sport=7, dport=53)
TCP6 = Packet(family=Family.IP6, src=1, dst=2, proto=Protocol.TCP, sport=7, dport=80)


@pytest.mark.parametrize(
    ("packet", "length"),
    [
        (UDP, 20 + 8),
        (replace(UDP, payload=b"12345"), 20 + 8 + 5),
        (replace(UDP, fragment=Fragment(1), payload=b"12345678"), 20 + 8),
        (replace(UDP, proto=Protocol.SCTP, payload=b"12345"), 20 + 20 + 8),
        (TCP6, 40 + 20),
        (replace(TCP6, mss=1400), 40 + 20 + 4),
        (replace(TCP6, routing=Routing(0, 0, 1), hop_options=0), 40 + 16 + 8 + 20),
        (replace(TCP6, fragment=Fragment(0, more=True)), 40 + 8 + 20),
    ],
)
def test_its_length_is_that_of_the_ip_packet(packet: Packet, length: int) -> None:
    assert packet.length == length


@pytest.mark.parametrize(
    ("packet", "text"),
    [
        (UDP, "udp 10.0.0.1:7 > 10.0.0.2:53"),
        (TCP6, "tcp [::1]:7 > [::2]:80"),
        (replace(UDP, fragment=Fragment(1)), "udp 10.0.0.1 > 10.0.0.2, a later fragment"),
        (replace(UDP, proto=200), "proto-200 10.0.0.1 > 10.0.0.2"),
    ],
)
def test_its_text_is_that_of_explain(packet: Packet, text: str) -> None:
    assert str(packet) == text
