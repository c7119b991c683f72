"""``-m sctp --chunk-types`` and its translation beside each other, on chunks that no corpus has.

The last packet is a later fragment whose data begins like a packet with chunks.
"""

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

MATCHES = tuple(
    f"-m sctp {no}--chunk-types {how} {types}"
    for how, types in (
        *(("any", "DATA"), ("any", "DATA,INIT"), ("all", "DATA"), ("all", "SACK,DATA"), ("any", "ASCONF")),
        *(("all", "FORWARD_TSN,ASCONF_ACK"), ("any", "SHUTDOWN_COMPLETE,ECN_ECNE,ECN_CWR")),
    )
    for no in ("", "! ")
)
SENDER, OWN = b"\x7f\0\0\2", b"\x7f\0\0\1"
CHUNKS = ((0,), (1,), (3, 0), (0, 3, 3), (0xC1,), (0xC0, 0x80), (14,), (12, 13), (4,), (9, 2))


def whole(*kinds: int, where: int = 0) -> bytes:
    """Return a packet with a chunk of each type; ``where`` is its offset as a fragment, divided by 8."""
    body = struct.pack("!HHII", 5, 80, 1, 0) + b"".join(struct.pack("!BBH4x", kind, 0, 8) for kind in kinds)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 7, where, 64, 132, 0)
    return head + SENDER + OWN + body


@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_kernel_finds_the_same_chunks(level: int) -> None:
    packets = [*(whole(*kinds) for kinds in CHUNKS), whole(0, 1, where=1)]
    rules = [f"-s 127.0.0.2 -p sctp {words}" for words in MATCHES]
    states = counts_of_both(rules, packets, Family.IP, level=level)
    for packet, (legacy, ours) in zip(packets, states, strict=True):
        assert ours == legacy, packet.hex()
    final = states[-1][0]
    assert final == states[-2][0], "a later fragment has no chunks"
    assert all(a and b and a + b == len(CHUNKS) for a, b in zip(final[::2], final[1::2], strict=True)), final
