"""``-j HMARK`` in the tc program and in iptables-legacy: each bit of the mark, for odd packets.

No corpus has these: headers with options, truncated headers, and ICMP errors that quote odd packets.
"""

from __future__ import annotations

import random
import struct

import pytest

from backends.tc_ebpf import TcEbpfBackend
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.matchedtc import matched_in_both
from translate.ir import Family

RULES = {
    Family.IP: (
        "--hmark-tuple src,dst,sport,dport,proto --hmark-rnd 0xdeadbeef --hmark-mod 4294967295",
        "--hmark-src-prefix 24 --hmark-dst-prefix 9 --hmark-spi-mask 0xffff00ff --hmark-spi 0x1000"
        " --hmark-proto-mask 3 --hmark-rnd 0 --hmark-mod 2147483648 --hmark-offset 4000000000",
        "--hmark-sport-mask 0xff --hmark-dport 0x35 --hmark-rnd 7 --hmark-mod 4294967295",
    ),
    Family.IP6: (
        "--hmark-tuple src,dst,sport,dport,proto --hmark-rnd 0xdeadbeef --hmark-mod 4294967295",
        "--hmark-src-prefix 120 --hmark-dst-prefix 33 --hmark-spi-mask 0xffff00ff --hmark-spi 0x1000"
        " --hmark-proto-mask 3 --hmark-rnd 0 --hmark-mod 2147483648 --hmark-offset 4000000000",
        "--hmark-sport-mask 0xff --hmark-dport 0x35 --hmark-rnd 7 --hmark-mod 4294967295",
    ),
}
PROTOCOLS = (6, 17, 33, 50, 51, 132, 136, 47, 1, 58, 99, 59)
ERRORS = {Family.IP: (3, 4, 5, 11, 12), Family.IP6: (1, 2, 3, 4, 100, 127)}
OTHERS = {Family.IP: (0, 8, 13, 18, 19), Family.IP6: (0, 128, 129, 137, 200)}
BEFORE = 0x5A5A5A5A
BITS = range(32)
LENGTHS = (24, 24, 24, 8, 4, 3, 0)
HOP, ROUTING, FRAGMENT, OPTIONS = 0, 43, 44, 60


@pytest.fixture(scope="module", autouse=True)
def _needs_bcc() -> None:
    require(TcEbpfBackend())


class Packets:
    """Packets to this machine by a seed."""

    def __init__(self, family: Family, seed: int) -> None:
        self.draw = random.Random(seed)
        self.family = family
        self.own = bytes((127, 0, 0, 1)) if family is Family.IP else (1).to_bytes(16, "big")

    def make(self) -> bytes:
        icmp = 1 if self.family is Family.IP else 58
        proto = self.draw.choice([p for p in PROTOCOLS if self.family is Family.IP or p != 51])
        if proto != icmp and self.draw.random() < 0.6:
            return self.whole(*self.behind(proto, self.body(proto)), self.source(), self.own)
        errors, others = ERRORS[self.family], OTHERS[self.family]
        kind = self.draw.choice(errors if self.draw.random() < 0.8 else others)
        message = bytes((kind, 0, 0, 0)) + self.draw.randbytes(4) + self.quoted()
        return self.whole(*self.behind(icmp, message), self.source(), self.own)

    def source(self) -> bytes:
        return bytes((127, *self.draw.randbytes(2), 1)) if self.family is Family.IP else self.own

    def body(self, proto: int) -> bytes:
        """The start of a transport header, cut or not."""
        begin = bytes((17, 4, 0, 0)) if proto == 51 else struct.pack("!HH", self.draw.randint(0, 65535), 53)
        return (begin + self.draw.randbytes(20))[: self.draw.choice(LENGTHS)]

    def quoted(self) -> bytes:
        """A packet in an error, some of them cut, fragments, or of no version."""
        proto = self.draw.choice(PROTOCOLS)
        where = self.draw.choice((0, 0, 0x4000, 0x2000, 1))
        src, dst = (self.draw.randbytes(self.family.bits // 8) for _ in range(2))
        inner = self.whole(*self.behind(proto, self.body(proto), quoted=True), src, dst, where)
        if self.draw.random() < 0.3:
            inner = inner[: self.draw.randint(0, len(inner))]
        return b"\x45" + inner[1:] if self.family is Family.IP6 and self.draw.random() < 0.05 else inner

    def whole(self, proto: int, body: bytes, src: bytes, dst: bytes, where: int = 0) -> bytes:
        if self.family is Family.IP6:
            return struct.pack("!IHBB", 6 << 28, len(body), proto, 64) + src + dst + body
        words = self.draw.choice((5, 5, 6, 15))
        options = b"\1" * (words * 4 - 20)
        size = words * 4 + len(body)
        head = struct.pack("!BBHHHBBH", 0x40 | words, 0, size, 1, where, 64, proto, 0)
        return head + src + dst + options + body

    def behind(self, proto: int, body: bytes, *, quoted: bool = False) -> tuple[int, bytes]:
        """Put a packet of IPv6 behind extension headers."""
        for _ in range(self.draw.choice((0, 0, 1, 2)) if self.family is Family.IP6 else 0):
            kind = self.draw.choice((OPTIONS, ROUTING, FRAGMENT) if quoted else (OPTIONS, ROUTING))
            if kind == FRAGMENT:
                where = self.draw.choice((0, 0, 1, 8, 0xFFF8))
                header = struct.pack("!BBHI", proto, 0, where, 77)
            else:
                rest = bytes(6) if kind == ROUTING else bytes((0x1E, 4, 0, 0, 0, 0))
                header = bytes((proto, 1)) + rest + bytes((0x1E, 6)) + bytes(6)
            proto, body = kind, header + body
        return proto, body


@pytest.mark.parametrize("family", Family)
def test_each_bit_of_the_mark_is_that_of_iptables(family: Family) -> None:
    made = Packets(family, 5)
    packets = [made.make() for _ in range(150)]
    rules = RULES[family]
    # the stack answers with errors, which do not have these senders
    sender = "-s 127.0.0.0/8" if family is Family.IP else "-s ::1"
    matches = [f"{sender} -m mark --mark {1 << bit:#x}/{1 << bit:#x}" for _ in rules for bit in BITS]
    before = [
        [] if bit else [f"-j MARK --set-mark {BEFORE:#x}", f"-j HMARK {rule}"]
        for rule in rules
        for bit in BITS
    ]
    states = matched_in_both(matches, packets, family, before=before)
    marks = set()
    for packet, both in zip(packets, states, strict=True):
        legacy, ours = map(marks_of, both)
        assert ours == legacy, packet.hex()
        marks |= set(legacy)
    assert BEFORE in marks
    assert len(marks) > len(packets)


def marks_of(bits: list[bool]) -> list[int]:
    """The marks of the rules, each from its 32 bits."""
    return [sum(bits[at + bit] << bit for bit in BITS) for at in range(0, len(bits), len(BITS))]
