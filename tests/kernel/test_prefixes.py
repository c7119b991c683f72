"""``-j SNPT`` and ``-j DNPT`` in the tc program and in iptables-legacy: the bytes that leave."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from backends.iptables.backend import IptablesLoader
from backends.replay.loader import Loader
from backends.replay.worker import Worker
from backends.tc_ebpf import TcEbpfBackend
from backends.tc_ebpf.loader import TcEbpfLoader
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.tcnode import StartWith, node_of
from translate.bpf import emit
from translate.ir import Family, parse_address
from translate.passes import lower
from translate.read import read_ruleset

UDP, ICMP, DESTINATION = 17, 58, 60
PREFIXES = (
    *("fd00::/48 2001:db8:1::/48", "fd00::/64 fd01::/64", "fd00::/56 2001:db8:1:ff00::/56"),
    *("fd00::/16 fd00::/16", "fd00::/8 2001:db8::/44", "2001:db8:0:fff0::/60 fdff::/33"),
    *("2001:db8::/32 2001:db8::/64", "ffff:ffff:ffff:ffff::/64 2001:db8:0:1::/64"),
    *("fd00::/49 2001:db8:8000::/33", "fd00::/64 8000::/1"),
)
ADDRESSES = (
    *("fd00::1:1", "fd00::1:0:0:1", "fd00::ffff:0:0:1", "fd00::ffff:ffff:0:1", "fd00::ffff:ffff:ffff:1"),
    *("fd00::fffe:0:0:1", "fd00:0:0:ffff::1", "fd00:0:0:d5aa::1", "fd00:0:0:2a55::1", "fd00:1:2:3:4:5:6:7"),
    *("2001:db8::5", "2001:db8:0:ffff:ffff:ffff:ffff:5", "2001:db8:1:ff:0:ffff::5"),
)
CLIENT, SERVER = "fd00::1:1", "2001:db8::200"


@pytest.fixture(scope="module", autouse=True)
def _needs_bcc() -> None:
    require(TcEbpfBackend())


def packed(address: str) -> bytes:
    return parse_address(Family.IP6, address).to_bytes(16, "big")


def summed(data: bytes) -> bytes:
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    return (0xFFFF - total % 0xFFFF).to_bytes(2, "big")


def whole(src: str, dst: str, proto: int, body: bytes, limit: int, headers: bytes = b"") -> bytes:
    first = DESTINATION if headers else proto
    return (
        struct.pack("!IHBB", 6 << 28, len(headers + body), first, limit)
        + packed(src)
        + packed(dst)
        + headers
        + body
    )


def datagram(src: str, dst: str, limit: int) -> bytes:
    body = struct.pack("!HHHH", 5000, 53, 12, 0) + b"data"
    check = summed(packed(src) + packed(dst) + struct.pack("!II", len(body), UDP) + body)
    return whole(src, dst, UDP, body[:6] + check + body[8:], limit)


def error(src: str, dst: str, inner: bytes, limit: int, kind: int = 1, headers: bytes = b"") -> bytes:
    body = struct.pack("!BBHI", kind, 0, 0, 0) + inner
    padding = b"\0" * (len(body) % 2)
    check = summed(packed(src) + packed(dst) + struct.pack("!II", len(body), ICMP) + body + padding)
    return whole(src, dst, ICMP, body[:2] + check + body[4:], limit, headers)


def packets(limit: int, *, source: bool) -> Iterator[bytes]:
    """Packets with each address, and errors that quote a packet with it."""
    for address in ADDRESSES:
        src, dst = (address, SERVER) if source else (CLIENT, address)
        yield datagram(src, dst, limit)
        inner = datagram(dst, src, 9)
        yield from (error(src, dst, inner, limit, kind) for kind in (1, 2, 4, 5, 100, 127, 128))
        for other in (CLIENT, SERVER):
            yield error(src, dst, datagram(*(dst, other) if source else (other, dst), 9), limit)
        yield error(src, dst, inner[:40], limit)
        yield error(src, dst, inner[:39], limit)
        yield error(src, dst, inner, limit, headers=bytes((ICMP, 0, 1, 4, 0, 0, 0, 0)))
        yield whole(src, dst, ICMP, b"\1\0\0\0\0\0\0", limit)


def left(loader: Loader, *, source: bool) -> dict[tuple[str, str], list[str]]:
    """The packets that leave, by the target's prefixes and the packet."""
    found = {}
    with Worker(StartWith(node_of(Family.IP6), loader)) as worker:
        for number, prefixes in enumerate(PREFIXES):
            for packet in packets(100 + number, source=source):
                there = worker.ask(("send", "pod0", [packet]))
                found[prefixes, packet.hex()] = [one.hex() for one in there]
    return found


@pytest.mark.parametrize("level", [0, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("source", [True, False])
def test_a_packet_leaves_with_the_same_bytes(source: bool, level: int) -> None:
    chain, target, passed = ("POSTROUTING", "SNPT", 1) if source else ("PREROUTING", "DNPT", 0)
    rules = [
        f"-A {chain} -m hl --hl-eq {100 + number - passed} -j {target} --src-pfx {old} --dst-pfx {new}"
        for number, (old, new) in enumerate(prefixes.split() for prefixes in PREFIXES)
    ]
    text = "\n".join(("*mangle", *rules, "COMMIT", ""))
    program = emit(lower(read_ruleset(text.encode(), name="rules", family=Family.IP6), level=level))
    expected = left(IptablesLoader("ip6tables-legacy", text, Family.IP6), source=source)
    found = left(TcEbpfLoader(program), source=source)
    assert {name: (expected[name], found[name]) for name in expected if expected[name] != found[name]} == {}
    sent = [one for ones in expected.values() for one in ones]
    assert len(set(sent)) > len(expected) / 2
