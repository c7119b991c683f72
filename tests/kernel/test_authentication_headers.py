"""AH in IPv6, which no corpus has: ip6tables finds the protocol behind it, and nftables stops there."""

from __future__ import annotations

import os
import struct

import pytest

from tests.kernel.helpers.counted import counts_of_both
from translate.ir import Family

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]

UDP, AH = 17, 51
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
