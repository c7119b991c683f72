"""``-m bpf`` in iptables-legacy, in the tc program and in the simulator's interpreter: random programs."""

from __future__ import annotations

import random
import struct

import pytest

from backends.model.packet import Packet
from backends.simulator.conntrack.skb import Skb
from backends.simulator.matching import bytecode
from backends.simulator.matching.contents import Contents
from backends.tc_ebpf import TcEbpfBackend
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.matchedtc import matched_in_both
from translate.ir import BytecodeTest, Family
from translate.ir.bytecode import ProgramError, read_bytecode

PLACES = (0, 1, 2, 6, 9, 12, 16, 20, 22, 24, 26, 30, 40, 42, 60, 100, 0x7FFFFFFF)
ANCILLARY = (0xFFFFF000, 0xFFFFF004, 0xFFFFF014, 0xFFFFF028, 0xFFF00000, 0xFFF00008)
OFFSETS = (0, 1, 2, 4, 0xFFFFFFFF, 0xFFFFFFF0, 0xFFF00000)
NUMBERS = (0, 1, 2, 3, 6, 17, 0x45, 53, 255, 0xFFFF, 0x7F000001, 0x80000000, 0xFFFFFFFF)
PLAIN = ((0x80, 0), (0x81, 0), (0xB1, 0), (0xB1, 20), (0xB1, 5), (1, 24), (0, 0x12345678), (7, 0), (0x87, 0))
OPERATIONS = range(0, 0xB0, 0x10)


@pytest.fixture(scope="module", autouse=True)
def _needs_bcc() -> None:
    require(TcEbpfBackend())


def instruction(draw: random.Random, behind: int) -> tuple[int, int, int, int]:
    """An instruction with ``behind`` others after it."""
    kind = draw.random()
    if kind < 0.35:
        place = draw.choice(PLACES if draw.random() < 0.9 else ANCILLARY)
        return draw.choice((0x20, 0x28, 0x30)), 0, 0, place
    if kind < 0.42:
        return draw.choice((0x40, 0x48, 0x50)), 0, 0, draw.choice(OFFSETS)
    if kind < 0.52:
        code, number = draw.choice(PLAIN)
        return code, 0, 0, number
    if kind < 0.6:
        return draw.choice((2, 3, 0x60, 0x61)), 0, 0, draw.randrange(4)
    if kind < 0.8 or behind < 2:
        operation = draw.choice(OPERATIONS)
        number = draw.randrange(32) if operation in (0x60, 0x70) else draw.choice(NUMBERS)
        return 4 | operation | draw.choice((0, 8)), 0, 0, number
    if kind < 0.83:
        return 5, 0, 0, draw.randrange(min(behind, 4))
    code = 5 | draw.choice((0x10, 0x20, 0x30, 0x40)) | draw.choice((0, 0, 8))
    return code, draw.randrange(min(behind, 8)), draw.randrange(min(behind, 8)), draw.choice(NUMBERS)


def programs(draw: random.Random, count: int) -> list[str]:
    """Programs that the kernel takes."""
    made: list[str] = []
    while len(made) < count:
        length = draw.choice((2, 3, 5, 8, 12, 20, 30))
        listed = [instruction(draw, length - place - 1) for place in range(length - 1)]
        listed.append(draw.choice(((6, 0, 0, 1), (6, 0, 0, 65535), (0x16, 0, 0, 0))))
        if length > 4:
            listed[draw.randrange(2, length)] = (6, 0, 0, draw.randrange(2))
        text = ",".join((str(length), *(" ".join(map(str, each)) for each in listed)))
        try:
            read_bytecode(text)
        except ProgramError:
            continue
        made.append(text)
    return made


def packet(draw: random.Random, family: Family) -> bytes:
    proto = draw.choice((17, 6, 99, 132))
    body = struct.pack("!HHHH", draw.choice((5, 53)), draw.choice((53, 80)), 12, 0)
    body = (body + draw.randbytes(draw.choice((0, 4, 60))))[: draw.choice((99, 99, 3))]
    if family is Family.IP6:
        return struct.pack("!IHBB", 6 << 28, len(body), proto, 64) + (bytes(15) + b"\1") * 2 + body
    words = draw.choice((5, 6, 8))
    size = words * 4 + len(body)
    head = struct.pack("!BBHHHBBH", 0x40 | words, 16, size, 7, 0x4000, 64, proto, 0)
    return head + b"\x7f\0\0\2" + b"\x7f\0\0\1" + b"\1" * (words * 4 - 20) + body


@pytest.mark.parametrize("family", [Family.IP, pytest.param(Family.IP6, marks=pytest.mark.slow)])
def test_a_program_takes_the_same_packets(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(11)
    listed, sent = programs(draw, 40), [packet(draw, family) for _ in range(40)]
    # the stack answers with errors; over IPv4 these do not have this sender
    sender = "-s 127.0.0.2" if family is Family.IP else "-s ::1"
    rules = [f'{sender} -m bpf --bytecode "{text}"' for text in listed]
    states = matched_in_both(rules, sent, family)
    taken = 0
    for data, (legacy, ours) in zip(sent, states, strict=True):
        different = [text for text, a, b in zip(listed, legacy, ours, strict=True) if a != b]
        assert different == [], data.hex()
        taken += sum(legacy)
        if family is Family.IP:
            assert [simulated(text, data, monkeypatch) for text in listed] == legacy, data.hex()
    assert 0.1 < taken / len(sent) / len(listed) < 0.9


def simulated(text: str, data: bytes, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether the interpreter takes these bytes."""
    monkeypatch.setattr(bytecode, "contents", lambda _: Contents(data, b"\xff" * len(data)))
    skb = Skb(Packet(family=Family.IP, src=1, dst=2, proto=99))
    return bytecode.takes(BytecodeTest(program=read_bytecode(text)), skb)
