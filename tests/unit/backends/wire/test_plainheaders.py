"""The place of the TCP or UDP header."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backends.model.packet import Fragment, Packet
from backends.wire.frames import build
from backends.wire.plainheaders import transport_header
from translate.ir import Family, Protocol

PACKET = Packet(family=Family.IP, src=1, dst=9, proto=Protocol.TCP, sport=40000, dport=53, payload=b"abc")


@pytest.mark.parametrize(("family", "start"), [(Family.IP, 20), (Family.IP6, 40)])
@pytest.mark.parametrize(("proto", "length"), [(Protocol.TCP, 20), (Protocol.UDP, 8)])
def test_the_header_follows_a_plain_ip_header(
    family: Family, start: int, proto: Protocol, length: int
) -> None:
    data = build(replace(PACKET, family=family, proto=proto))
    assert transport_header(data) == (proto, start)
    assert transport_header(data[: start + length]) == (proto, start)
    assert transport_header(data[: start + length - 1]) is None


@pytest.mark.parametrize(
    "data",
    [
        build(replace(PACKET, proto=Protocol.SCTP)),
        build(replace(PACKET, fragment=Fragment(0, True, 7))),
        b"\x46" + build(PACKET)[1:],
        b"",
    ],
    ids=["sctp", "fragment", "options", "nothing"],
)
def test_other_packets_have_no_plain_header(data: bytes) -> None:
    assert transport_header(data) is None
