"""AH in IPv6, which no corpus has: ``-m ah`` beside its translations, and what is behind the header.

ip6tables finds the protocol behind it, and nftables stops there.
"""

from __future__ import annotations

import os
import struct

import pytest

from backends.tc_ebpf import TcEbpfBackend
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.counted import counts_of_both
from tests.kernel.helpers.matchedtc import matched_in_both
from translate.ir import Family

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]

UDP, FRAGMENT, ESP, AH, NONE, OPTIONS = 17, 44, 50, 51, 59, 60
DATAGRAM = bytes.fromhex("00050006000c0000" + "00000000")
HEADER = struct.pack("!BBHII", UDP, 4, 0, 5, 1) + bytes(12)
"""AH of 24 bytes before UDP, with the SPI 5."""


def whole(protocol: int, data: bytes) -> bytes:
    own = (1).to_bytes(16, "big")
    return struct.pack("!IHBB", 6 << 28, len(data), protocol, 64) + own + own + data


def test_rules_of_nftables_do_not_see_behind_an_authentication_header() -> None:
    """If this test fails, docs/limits.md and the refusal of ``-p ah`` are no longer true."""
    packets = [whole(UDP, DATAGRAM), whole(AH, HEADER + DATAGRAM)]
    plain, behind = counts_of_both(["-p udp -m udp --dport 6", "-p udp"], packets, Family.IP6, level=0)
    assert plain == ([1, 1], [1, 1])
    assert behind == ([2, 2], [1, 1])


MATCHES = (
    *("", "--ahspi 5", "! --ahspi 5", "--ahspi 1:5", "--ahspi 4294967295", "--ahspi 7:5"),
    *("--ahlen 24", "! --ahlen 24", "--ahlen 23", "! --ahlen 23", "--ahlen 0", "! --ahlen 0", "--ahlen 12"),
    *("--ahlen 1028", "--ahlen 8", "--ahlen 1032", "--ahres", "--ahspi 5 --ahlen 24 --ahres"),
)
NEVER = {"--ahspi 7:5", "--ahlen 23", "--ahlen 8", "--ahlen 1032"}


def header(length: int = 4, reserved: int = 0, spi: int = 5, *, before: int = UDP) -> bytes:
    return struct.pack("!BBHII", before, length, reserved, spi, 1) + bytes((length + 2) * 4 - 12)


HEADERS = (
    whole(UDP, DATAGRAM),
    whole(ESP, DATAGRAM),
    *(
        whole(AH, header(*parts) + DATAGRAM)
        for parts in ((), (1,), (4, 1), (4, 0, 6), (4, 0x100, 0xFFFFFFFF), (255, 0, 0), (4, 0, 0x05000000))
    ),
    whole(OPTIONS, bytes((AH, 0, 1, 4, 0, 0, 0, 0)) + header() + DATAGRAM),
    whole(AH, header(spi=9, before=AH) + header() + DATAGRAM),
    whole(AH, header(spi=9, before=ESP) + DATAGRAM),
    whole(AH, header(before=NONE)),
)
FRAGMENTS = (
    whole(FRAGMENT, bytes((AH, 0, 0, 1, 0, 0, 0, 7)) + header() + DATAGRAM[:8]),
    whole(FRAGMENT, bytes((AH, 0, 0, 0x21, 0, 0, 0, 8)) + header() + DATAGRAM[:8]),
)
"""The first fragment of a packet, and a later one of another packet."""


@pytest.mark.parametrize("level", [0, 1, 2])
def test_nftables_reads_the_same_headers(level: int) -> None:
    packets = (*HEADERS, *FRAGMENTS)
    states = counts_of_both(
        [f"-m ah {words}".rstrip() for words in MATCHES], packets, Family.IP6, level=level
    )
    for packet, (legacy, ours) in zip(packets, states, strict=True):
        assert ours == legacy, packet.hex()
    final = dict(zip(MATCHES, states[-1][0], strict=True))
    assert {words for words, count in final.items() if not count} == NEVER
    assert final[""] == len(HEADERS) - 2 + 1


@pytest.mark.parametrize("level", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_the_tc_program_reads_the_same_headers(level: int) -> None:
    require(TcEbpfBackend())
    rules = [f"-m ah {words}".rstrip() for words in MATCHES]
    states = matched_in_both(rules, HEADERS, Family.IP6, level=level)
    for packet, (legacy, ours) in zip(HEADERS, states, strict=True):
        assert ours == legacy, packet.hex()
