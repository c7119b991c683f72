"""Matches with a state in the tc program and in iptables-legacy: ``-m hashlimit`` and ``-m quota``."""

from __future__ import annotations

import struct

import pytest

from backends.tc_ebpf import TcEbpfBackend
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.matchedtc import matched_in_both
from translate.ir import Family, parse_address

TCP, UDP, ESP, AH, NONE, ODD = 6, 17, 50, 51, 59, 99
SENDERS = {Family.IP: ("127.0.0.2", "127.0.0.3", "127.0.1.2"), Family.IP6: ("::1", "::1", "::1")}
OWN = {Family.IP: "127.0.0.1", Family.IP6: "::1"}
HASHED = (
    *("--hashlimit-upto 2/day --hashlimit-burst 2", "--hashlimit-above 1/day --hashlimit-burst 1"),
    "--hashlimit-upto 1/day --hashlimit-burst 1 --hashlimit-mode srcip",
    "--hashlimit-upto 1/day --hashlimit-burst 1 --hashlimit-mode srcip --hashlimit-srcmask 24",
    "--hashlimit-above 3/day --hashlimit-burst 3 --hashlimit-mode dstip,dstport",
    "--hashlimit-upto 1/hour --hashlimit-burst 1 --hashlimit-mode srcport",
    "--hashlimit-upto 1/hour --hashlimit-burst 1 --hashlimit-mode dstport",
    "--hashlimit-upto 1/hour --hashlimit-burst 2 --hashlimit-mode srcip,srcport,dstip,dstport",
    "--hashlimit-upto 1/day --hashlimit-burst 1 --hashlimit-mode srcip --hashlimit-dstmask 0",
)


@pytest.fixture(scope="module", autouse=True)
def _needs_bcc() -> None:
    require(TcEbpfBackend())


def whole(family: Family, src: str, proto: int, body: bytes) -> bytes:
    addresses = b"".join(
        parse_address(family, a).to_bytes(family.bits // 8, "big") for a in (src, OWN[family])
    )
    if family is Family.IP6:
        return struct.pack("!IHBB", 6 << 28, len(body), proto, 64) + addresses + body
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 1, 0, 64, proto, 0) + addresses + body


def packets(family: Family) -> list[bytes]:
    """Packets of several senders, protocols and ports, each of them more than once."""
    bodies = [
        *((proto, struct.pack("!HH", 5000, port) + bytes(20)) for proto in (UDP, TCP) for port in (7, 8)),
        *((ESP, struct.pack("!HH", high, low) + bytes(12)) for high, low in ((5000, 7), (9, 7))),
        (ODD, struct.pack("!HH", 5000, 7) + bytes(12)),
    ]
    if family is Family.IP:  # of an extension header, iptables counts what is behind it
        bodies += [(AH, bytes((UDP, 4, 0, 0)) + struct.pack("!HH", 5000, low) + bytes(16)) for low in (7, 8)]
    return [whole(family, src, *body) for body in bodies for src in SENDERS[family] for _ in range(2)]


@pytest.mark.parametrize("family", [Family.IP, pytest.param(Family.IP6, marks=pytest.mark.slow)])
def test_buckets_are_those_of_iptables(family: Family) -> None:
    masked = [words for words in HASHED if family is Family.IP or "srcmask" not in words]
    rules = [f"-m hashlimit {words} --hashlimit-name t{n}" for n, words in enumerate(masked)]
    # a table has the key and the rate of the rule that is first
    shared = (
        "-m hashlimit --hashlimit-{} {}/day --hashlimit-burst {} --hashlimit-mode {} --hashlimit-name shared"
    )
    rules += [shared.format("upto", 5, 5, "srcip"), shared.format("above", 7, 7, "dstport")]
    states = matched_in_both(rules, packets(family), family)
    for number, (legacy, ours) in enumerate(states):
        different = [words for words, a, b in zip(rules, legacy, ours, strict=True) if a != b]
        assert different == [], number
    for words, *held in zip(rules, *(legacy for legacy, _ in states), strict=True):
        assert set(held) == {True, False}, words


WINDOWS = (
    *("--hashlimit-upto 3/sec --hashlimit-burst 1", "--hashlimit-above 10/sec --hashlimit-burst 5"),
    "--hashlimit-upto 2/sec --hashlimit-burst 1 --hashlimit-mode srcip --hashlimit-htable-expire 20000",
    "--hashlimit-upto 30/min --hashlimit-burst 9 --hashlimit-mode dstport",
    "--hashlimit-above 1/sec --hashlimit-burst 2 --hashlimit-mode srcip --hashlimit-rate-interval 2",
)


@pytest.mark.parametrize("family", [Family.IP, pytest.param(Family.IP6, marks=pytest.mark.slow)])
def test_windows_are_those_of_iptables(family: Family) -> None:
    """The packets take some seconds, so that windows end."""
    rules = [
        f"-m hashlimit {words} --hashlimit-name w{n} --hashlimit-rate-match"
        for n, words in enumerate(WINDOWS)
    ]
    states = matched_in_both(rules, packets(family) * 2, family)
    for number, (legacy, ours) in enumerate(states):
        different = [words for words, a, b in zip(rules, legacy, ours, strict=True) if a != b]
        assert different == [], number
    for words, *held in zip(rules, *(legacy for legacy, _ in states), strict=True):
        assert set(held) == {True, False}, words


QUOTAS = ("0", "43", "44", "100", "131", "132", "1000", "4294967296", "18446744073709551615")


@pytest.mark.parametrize("family", [Family.IP, pytest.param(Family.IP6, marks=pytest.mark.slow)])
def test_quotas_end_with_the_same_packet(family: Family) -> None:
    lengths = (24, 24, 40, 24, 1, 24, 300, 24, 1, 700, 1, 1400)
    sender = SENDERS[family][0]
    sent = [whole(family, sender, NONE if family is Family.IP6 else ODD, bytes(length)) for length in lengths]
    # the stack answers with errors, which do not have this sender; to "no next header" it does not answer
    rules = [f"-s {sender} -m quota {no}--quota {size}" for size in QUOTAS for no in ("", "! ")]
    states = matched_in_both(rules, sent, family)
    for number, (legacy, ours) in enumerate(states):
        assert ours == legacy, number
        assert all(a != b for a, b in zip(legacy[::2], legacy[1::2], strict=True))
