"""``-m mh`` beside its translation: every type, and headers that later tests reach or not."""

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

MATCHES = (
    *("", "--mh-type 0", "! --mh-type 0", "--mh-type 5", "! --mh-type binding-update", "--mh-type 1:3"),
    *("! --mh-type 1:3", "--mh-type :4", "--mh-type 4:", "--mh-type 255", "! --mh-type :", "--mh-type h"),
)
NEVER = {"! --mh-type :"}
MOBILITY, NONE, UDP, ROUTING = 135, 59, 17, 43


def whole(proto: int, body: bytes) -> bytes:
    own = (1).to_bytes(16, "big")
    return struct.pack("!IHBB", 6 << 28, len(body), proto, 64) + own + own + body


def header(kind: int) -> bytes:
    return bytes((NONE, 2, kind)) + bytes(21)


@pytest.mark.parametrize("level", [0, 2])
def test_the_kernel_reads_the_same_types(level: int) -> None:
    packets = [whole(MOBILITY, header(kind)) for kind in (*range(9), 254, 255)]
    packets.append(whole(UDP, bytes.fromhex("0005000600080000")))
    packets.append(whole(ROUTING, bytes((MOBILITY, 0, 4, 0)) + bytes(4) + header(5)))
    rules = [f"-p mobility-header -m mh {words}".rstrip() for words in MATCHES]
    states = counts_of_both(rules, packets, Family.IP6, level=level)
    for packet, (legacy, ours) in zip(packets, states, strict=True):
        assert ours == legacy, packet.hex()
    counts = dict(zip(MATCHES, states[-1][0], strict=True))
    assert counts[""] == 12
    assert {words for words, count in counts.items() if not count} == NEVER


def test_the_tc_program_reads_the_same_types() -> None:
    require(TcEbpfBackend())
    packets = [whole(MOBILITY, header(kind)) for kind in (*range(9), 254, 255)]
    packets.append(whole(UDP, bytes.fromhex("0005000600080000")))
    packets.append(whole(ROUTING, bytes((MOBILITY, 0, 4, 0)) + bytes(4) + header(5)))
    packets += [whole(MOBILITY, header(5)[:length]) for length in (6, 7)]
    rules = [f"-p mobility-header -m mh {words}".rstrip() for words in MATCHES]
    states = matched_in_both(rules, packets, Family.IP6)
    for packet, (legacy, ours) in zip(packets, states, strict=True):
        assert ours == legacy, packet.hex()
    assert {
        words for words, *held in zip(MATCHES, *(a for a, _ in states), strict=True) if not any(held)
    } == NEVER
