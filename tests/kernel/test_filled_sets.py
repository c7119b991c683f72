"""``-j SET`` in the tc program and in iptables-legacy: the members of sets after each of many packets."""

from __future__ import annotations

import random
import struct

import pytest

from backends.tc_ebpf import TcEbpfBackend
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.matchedtc import matched_in_both
from translate.ir import Family, parse_address

ADD, REMOVE, RENEW = 0x04, 0x08, 0x0C
SETS = {
    "ip": ("hash:ip", "", "src"),
    "few": ("hash:ip", "maxelem 2", "src"),
    "port": ("hash:ip,port", "", "src,src"),
    "service": ("hash:ip,port", "timeout 600", "dst,dst"),
    "pair": ("hash:ip,port,ip", "timeout 0", "src,dst,dst"),
    "open": ("bitmap:port", "range 3-5", "dst"),
}
SENDERS = {Family.IP: ("127.0.0.2", "127.0.0.3", "127.0.1.2"), Family.IP6: ("::1", "::1", "::1")}
OWN = {Family.IP: "127.0.0.1", Family.IP6: "::1"}
TCP, UDP, ICMP, ESP, SCTP, ODD = 6, 17, 1, 50, 132, 99
PACKETS = 150


@pytest.fixture(scope="module", autouse=True)
def _needs_bcc() -> None:
    require(TcEbpfBackend())


def created(family: Family) -> str:
    family_name = "inet" if family is Family.IP else "inet6"
    lines = []
    for name, (kind, options, _) in SETS.items():
        own = "" if kind == "bitmap:port" else f"family {family_name} "
        lines.append(f"create {name} {kind} {own}{options}\n")
    return "".join(lines)


def drawn(family: Family, dice: random.Random) -> bytes:
    """A packet whose TOS says what is done with its key."""
    proto = dice.choice((TCP, UDP, UDP, SCTP, ESP, ODD, 58 if family is Family.IP6 else ICMP))
    body = struct.pack("!HH", dice.choice((3, 9)), dice.choice((2, 3, 5, 6))) + bytes(16)
    if proto in (ICMP, 58):
        body = bytes((dice.choice((0, 129)), dice.choice((0, 3)))) + bytes(18)
    tos = dice.choice((0, ADD, ADD, REMOVE, RENEW))
    addresses = b"".join(
        parse_address(family, a).to_bytes(family.bits // 8, "big")
        for a in (dice.choice(SENDERS[family]), OWN[family])
    )
    if family is Family.IP6:
        return struct.pack("!IHBB", 6 << 28 | tos << 20, len(body), proto, 64) + addresses + body
    return struct.pack("!BBHHHBBH", 0x45, tos, 20 + len(body), 1, 0, 64, proto, 0) + addresses + body


@pytest.mark.parametrize("level", [0, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", Family)
def test_sets_have_the_same_members(family: Family, level: int) -> None:
    changes = [
        f"-m tos --tos {tos:#04x} -j SET --{verb}-set {name} {sides}{more}"
        for name, (_, _, sides) in SETS.items()
        for tos, verb, more in ((ADD, "add", ""), (REMOVE, "del", ""), (RENEW, "add", " --exist --timeout 9"))
    ]
    matches = [
        f"-m set {no}--match-set {name} {sides}" for name, (_, _, sides) in SETS.items() for no in ("", "! ")
    ]
    matches += ["-m set --match-set ip dst", "-m set --match-set open src", "-m set --match-set port dst,dst"]
    dice = random.Random(f"{family.value}-5")
    sent = [drawn(family, dice) for _ in range(PACKETS)]
    before = [changes, *[()] * (len(matches) - 1)]
    states = matched_in_both(matches, sent, family, level=level, before=before, ipsets=created(family))
    for packet, (legacy, ours) in zip(sent, states, strict=True):
        assert [w for w, a, b in zip(matches, legacy, ours, strict=True) if a != b] == [], packet.hex()
    for words, *held in zip(matches[: 2 * len(SETS)], *(legacy for legacy, _ in states), strict=False):
        assert family is Family.IP6 or set(held) == {True, False}, words
