"""Connections of the tc program, told as conntrack(8) does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nfparity.tc.connections import Connection, ConnectionTuple
from translate.ir import Family, parse_address


def ip(text: str) -> int:
    return parse_address(Family.IP, text)


ASKED = Connection(
    family=Family.IP,
    proto=6,
    original=ConnectionTuple(src=ip("10.1.0.2"), dst=ip("10.96.0.10"), sport=40000, dport=80),
    reply=ConnectionTuple(src=ip("10.2.0.2"), dst=ip("10.1.0.2"), sport=8000, dport=40000),
    timeout=431999,
    state="ESTABLISHED",
    replied=True,
    assured=True,
    snat=False,
    dnat=True,
    mark=0x4000,
)


@pytest.mark.parametrize(
    ("connection", "line"),
    [
        (
            ASKED,
            "tcp      6 431999 ESTABLISHED src=10.1.0.2 dst=10.96.0.10 sport=40000 dport=80 "
            "src=10.2.0.2 dst=10.1.0.2 sport=8000 dport=40000 [ASSURED] mark=16384",
        ),
        (
            replace(ASKED, proto=17, state=None, timeout=29, replied=False, assured=False, mark=0),
            "udp      17 29 src=10.1.0.2 dst=10.96.0.10 sport=40000 dport=80 [UNREPLIED] "
            "src=10.2.0.2 dst=10.1.0.2 sport=8000 dport=40000 mark=0",
        ),
        (
            replace(ASKED, proto=47, state=None, timeout=599, assured=False, mark=0),
            "unknown  47 599 src=10.1.0.2 dst=10.96.0.10 src=10.2.0.2 dst=10.1.0.2 mark=0",
        ),
    ],
)
def test_lines(connection: Connection, line: str) -> None:
    assert connection.line() == line


def test_icmp_has_types_in_place_of_ports() -> None:
    original = replace(ASKED.original, sport=77, dport=8 << 8)
    reply = replace(ASKED.reply, sport=77, dport=0)
    data = replace(ASKED, proto=1, state=None, original=original, reply=reply).data()
    assert data["original"] == {"src": "10.1.0.2", "dst": "10.96.0.10", "type": 8, "code": 0, "id": 77}
    assert data["reply"] == {"src": "10.2.0.2", "dst": "10.1.0.2", "type": 0, "code": 0, "id": 77}
