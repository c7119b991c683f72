"""The interpreter of classic BPF on packets of which not all bytes are known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backends.model.packet import Packet, PortClass
from backends.simulator.conntrack.skb import Skb
from backends.simulator.matching.bytecode import takes
from backends.simulator.matching.undecided import Undecided
from translate.ir import BytecodeTest, Family
from translate.ir.bytecode import read_bytecode

PACKET = Packet(
    family=Family.IP, src=0x0A000001, dst=0x0A000002, proto=17, sport=7, dport=53, payload=b"data", cpu=3
)
PICKED = replace(PACKET, sport=PortClass(1024, 65535))


def run(*instructions: str, packet: Packet = PACKET, mark: int = 0) -> bool:
    text = ",".join((str(len(instructions)), *instructions))
    return takes(BytecodeTest(program=read_bytecode(text)), Skb(packet, link=1, mark=mark))


def returns(*instructions: str, number: int, mark: int = 0) -> bool:
    """Return whether a program leaves a number in A, and no other one."""
    equal = run(*instructions, f"21 0 1 {number}", "6 0 0 1", "6 0 0 0", mark=mark)
    other = run(*instructions, f"21 0 1 {number ^ 1}", "6 0 0 1", "6 0 0 0", mark=mark)
    return equal and not other


@pytest.mark.parametrize(
    ("instructions", "number"),
    [
        (("48 0 0 9",), 17),
        (("40 0 0 22",), 53),
        (("32 0 0 12",), 0x0A000001),
        (("177 0 0 0", "72 0 0 2"), 53),
        (("128 0 0 0",), 32),
        (("129 0 0 0", "135 0 0 0"), 32),
        (("0 0 0 5", "4 0 0 4294967295"), 4),
        (("0 0 0 5", "20 0 0 6"), 0xFFFFFFFF),
        (("0 0 0 65536", "36 0 0 65537"), 65536),
        (("0 0 0 7", "52 0 0 2"), 3),
        (("0 0 0 7", "148 0 0 4"), 3),
        (("0 0 0 12", "68 0 0 3"), 15),
        (("0 0 0 12", "84 0 0 10"), 8),
        (("0 0 0 12", "164 0 0 10"), 6),
        (("0 0 0 3", "100 0 0 31"), 0x80000000),
        (("0 0 0 2147483648", "116 0 0 31"), 1),
        (("0 0 0 3", "1 0 0 33", "108 0 0 0"), 6),
        (("0 0 0 5", "132 0 0 0"), 0xFFFFFFFB),
        (("0 0 0 5", "2 0 0 1", "0 0 0 6", "96 0 0 1"), 5),
        (("0 0 0 5", "7 0 0 0", "0 0 0 6", "3 0 0 15", "96 0 0 15"), 5),
        (("0 0 0 6", "1 0 0 3", "32 0 0 4294963240"), 5),
        (("32 0 0 4294963200",), 0x0800),
        (("32 0 0 4294963204",), 0),
        (("32 0 0 4294963220",), 9),
        (("32 0 0 4294963236",), 3),
        (("48 0 0 4293918729",), 17),
    ],
)
def test_instructions(instructions: tuple[str, ...], number: int) -> None:
    assert returns(*instructions, number=number, mark=9)


@pytest.mark.parametrize(("code", "jumps"), [(21, "0100"), (37, "0011"), (53, "0111"), (69, "0111")])
def test_jumps(code: int, jumps: str) -> None:
    values = (2, 3, 7, 11) if code != 69 else (4, 3, 7, 11)
    for value, jump in zip(values, jumps, strict=True):
        ways = ("6 0 0 1", "6 0 0 0")
        assert run(f"0 0 0 {value}", f"{code} 0 1 3", *ways) is (jump == "1"), value
        assert run(f"0 0 0 {value}", "1 0 0 3", f"{code + 8} 0 1 0", *ways) is (jump == "1"), value


@pytest.mark.parametrize(
    "load",
    ["32 0 0 29", "48 0 0 32", "64 0 0 2147483647", "48 0 0 2147483648", "177 0 0 4294963200"],
)
def test_a_load_behind_the_end_takes_no_packet(load: str) -> None:
    assert not run(load, "6 0 0 1")
    assert not run("0 0 0 5", "60 0 0 0", "6 0 0 1"), "a division by zero neither"


def test_what_unknown_bits_do_not_decide() -> None:
    port = "40 0 0 20"
    assert run(port, "84 0 0 0", "21 0 1 0", "6 0 0 1", "6 0 0 0", packet=PICKED)
    assert run(port, "68 0 0 65535", "21 0 1 65535", "6 0 0 1", "6 0 0 0", packet=PICKED)
    assert not run(port, "37 0 1 65535", "6 0 0 1", "6 0 0 0", packet=PICKED)
    assert run(port, "100 0 0 16", "69 1 0 65535", "6 0 0 1", "6 0 0 0", packet=PICKED)
    assert run(port, "21 0 0 5", "6 0 0 1", packet=PICKED), "both ways return the same"
    assert run("177 0 0 20", "6 0 0 1", packet=PICKED)


@pytest.mark.parametrize(
    "instructions",
    [
        ("21 0 1 5", "6 0 0 1", "6 0 0 0"),
        ("22 0 0 0",),
        ("7 0 0 0", "80 0 0 0", "6 0 0 1"),
        ("7 0 0 0", "0 0 0 1", "60 0 0 0", "6 0 0 1"),
        ("164 0 0 3", "4 0 0 1", "22 0 0 0"),
    ],
)
def test_what_unknown_bits_decide(instructions: tuple[str, ...]) -> None:
    with pytest.raises(Undecided, match="bytes that the kernel chooses"):
        run("40 0 0 20", *instructions, packet=PICKED)
