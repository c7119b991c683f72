"""Packets that are damaged, cut short or quoted in part: tracked and rewritten as by iptables-legacy."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest

from backends.iptables.backend import IptablesLoader
from backends.model.packet import GRE, Packet
from backends.replay.loader import Loader
from backends.replay.worker import Worker
from backends.tc_ebpf import TcEbpfBackend
from backends.tc_ebpf.loader import TcEbpfLoader
from backends.wire.checksums import crc32c, ones_sum
from backends.wire.frames import build
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.tcnode import StartWith, node_of
from tests.kernel.helpers.trackedstates import (
    ESTABLISHED,
    INVALID,
    NEW,
    RELATED,
    STATE_RULES,
    state_of,
)
from translate.bpf import emit
from translate.ir import Family, Protocol, TcpFlag, parse_address
from translate.passes import lower
from translate.read import read_ruleset

CLIENT = {Family.IP: "10.1.0.1", Family.IP6: "fd00::1:1"}
SERVER = {Family.IP: "192.0.2.200", Family.IP6: "2001:db8::200"}
SERVICE = {Family.IP: "203.0.113.80", Family.IP6: "2001:db8:f::80"}
ODD = 253  # a protocol of which nothing is known (RFC 3692)
PORTS = (40000, 80)


@pytest.fixture(scope="module", autouse=True)
def _needs_bcc() -> None:
    require(TcEbpfBackend())


@dataclass(frozen=True)
class Ends:
    """The ends of a connection of a client, whose packets go to the server itself or to the service."""

    family: Family
    number: int
    is_translated: bool

    def packet(self, direction: int, proto: int, payload: bytes = b"", *, inside: bool = True) -> bytes:
        """A packet of the client (0) or the server (1) as the client knows it, or as the server does."""
        service = SERVICE if self.is_translated and inside else SERVER
        client = parse_address(self.family, CLIENT[self.family]) + self.number
        ends = (client, parse_address(self.family, service[self.family]))
        sport, dport = PORTS if not direction else PORTS[::-1]
        has_ports = proto in (Protocol.TCP, Protocol.UDP, Protocol.SCTP)
        return build(
            Packet(
                family=self.family,
                src=ends[direction],
                dst=ends[1 - direction],
                proto=proto,
                sport=sport if has_ports else None,
                dport=dport if has_ports else None,
                flags=TcpFlag.SYN,
                seq=1,
                payload=payload,
            )
        )

    def there(self, proto: int, payload: bytes = b"data") -> tuple[str, bytes]:
        return "pod0", self.packet(0, proto, payload)

    def back(self, proto: int, payload: bytes = b"data") -> tuple[str, bytes]:
        return "eth0", self.packet(1, proto, payload, inside=False)

    def error(self, quoted: bytes, *, wrong: bool = False) -> tuple[str, bytes]:
        """The server's error about a packet of the client as it arrived."""
        header = 20 if self.family is Family.IP else 40
        outer = bytearray(self.packet(1, 1 if header == 20 else 58, inside=False)[:header])
        body = bytearray((3, 3) if header == 20 else (1, 4)) + bytes(6) + quoted
        pseudo = b"" if header == 20 else bytes(outer[8:40]) + struct.pack("!II", len(body), 58)
        check = 0xFFFF - ones_sum(pseudo + bytes(body)) % 0xFFFF
        body[2:4] = (check ^ (0x55 if wrong else 0)).to_bytes(2, "big")
        return "eth0", lengthened(self.family, bytes(outer), len(body)) + bytes(body)

    def quoted(self, proto: int) -> bytes:
        """A packet of the client as the server got it."""
        return self.packet(0, proto, b"data", inside=False)


def header_of(family: Family) -> int:
    return 20 if family is Family.IP else 40


def lengthened(family: Family, data: bytes, length: int) -> bytes:
    """The packet with the length of another body in its header."""
    if family is Family.IP6:
        return data[:4] + length.to_bytes(2, "big") + data[6:]
    changed = data[:2] + (20 + length).to_bytes(2, "big") + data[4:10] + bytes(2) + data[12:]
    return changed[:10] + (0xFFFF - ones_sum(changed[:20]) % 0xFFFF).to_bytes(2, "big") + changed[12:]


def cut(family: Family, data: bytes, length: int, padding: bytes = b"") -> bytes:
    """The packet with the first bytes of its body alone, and padding of the frame behind them."""
    header = header_of(family)
    return lengthened(family, data[: header + length], length) + padding


def without_chunk(e: Ends) -> tuple[str, bytes]:
    """An SCTP packet of the client that is a header alone, with a correct checksum."""
    data = cut(e.family, e.there(Protocol.SCTP)[1], 12)
    return "pod0", data[:-4] + crc32c(data[-12:-4] + bytes(4)).to_bytes(4, "little")


Sequence_ = tuple[tuple[str, bytes], ...]
MADE: dict[str, tuple[Callable[[Ends], Sequence_], list[int | None]]] = {
    "longer than its frame": (
        lambda e: (
            e.there(17),
            ("eth0", lengthened(e.family, e.back(17)[1], 100)),
            e.there(17),
        ),
        [NEW, None, NEW],
    ),
    "ports behind the packet": (
        lambda e: (("pod0", cut(e.family, e.there(17)[1], 4, b"\0\x0c\0\0data")),),
        [INVALID],
    ),
    "flags behind the packet": (
        lambda e: (("pod0", cut(e.family, e.there(6)[1], 8, e.there(6)[1][-16:-4])),),
        [INVALID],
    ),
    "four bytes of UDP quoted": (
        lambda e: (e.there(17), e.error(cut(e.family, e.quoted(17), 4))),
        [NEW, RELATED],
    ),
    "three bytes of UDP quoted": (
        lambda e: (e.there(17), e.error(cut(e.family, e.quoted(17), 3))),
        [NEW, INVALID],
    ),
    "eight bytes of TCP quoted": (
        lambda e: (e.there(6, b""), e.error(cut(e.family, e.quoted(6), 8))),
        [NEW, RELATED],
    ),
    "bytes quoted behind the error": (
        lambda e: (e.there(17), ("eth0", cut(e.family, e.error(e.quoted(17))[1], 8 + header_of(e.family)))),
        [NEW, INVALID],
    ),
    "a short GRE packet behind one with a key": (
        lambda e: (
            e.there(GRE, bytes.fromhex("0001880b00080007")),
            e.there(GRE, bytes.fromhex("00006558")),
            e.back(GRE, bytes.fromhex("00006558")),
        ),
        [NEW, NEW, ESTABLISHED],
    ),
    "SCTP without a chunk": (lambda e: (without_chunk(e),), [INVALID]),
}
"""For each name, the packets of a connection that is not translated, and their states; None is dropped."""
DROPPED_BY_NAT = {
    "four bytes of UDP quoted": [NEW, None],
    "a short GRE packet behind one with a key": [NEW, None, NEW],
}
"""The states of the same packets of a connection that is translated, where they are others."""


def of_ipv4(e: Ends) -> dict[str, tuple[Sequence_, list[int | None]]]:
    """Packets that only IPv4 has."""
    back = e.back(17)[1]
    damaged = ("eth0", back[:10] + bytes((back[10] ^ 1,)) + back[11:])
    fragment = e.quoted(17)[:6] + b"\x20\0" + e.quoted(17)[8:]
    later = e.quoted(17)[:6] + b"\0\x10" + e.quoted(17)[8:]
    long = b"\x4f" + e.quoted(ODD)[1:]
    return {
        "a wrong checksum of the header": ((e.there(17), damaged, e.there(17)), [NEW, None, NEW]),
        "a first fragment quoted": ((e.there(17), e.error(fragment)), [NEW, RELATED]),
        "a later fragment quoted": ((e.there(17), e.error(later)), [NEW, INVALID]),
        "a header quoted in part": ((e.there(ODD), e.error(long)), [NEW, INVALID]),
    }


def of_ipv6(e: Ends) -> dict[str, tuple[Sequence_, list[int | None]]]:
    """Packets that only IPv6 has."""

    def quoted(offset: int) -> bytes:
        whole = e.quoted(17)
        head = struct.pack("!BBHI", 17, 0, offset, 7)
        return lengthened(e.family, whole[:6] + b"\x2c" + whole[7:40] + head + whole[40:], len(whole) - 32)

    none = e.quoted(17)[:6] + b"\x3b" + e.quoted(17)[7:]
    return {
        "a first fragment quoted": ((e.there(17), e.error(quoted(1))), [NEW, RELATED]),
        "a later fragment quoted": ((e.there(17), e.error(quoted(8))), [NEW, INVALID]),
        "nothing behind the header quoted": ((e.there(17), e.error(none)), [NEW, INVALID]),
    }


def sequences(family: Family) -> dict[tuple[str, bool], tuple[Sequence_, list[int | None]]]:
    """The packets of each connection and their states, by a name and whether it is translated."""
    found: dict[tuple[str, bool], tuple[Sequence_, list[int | None]]] = {}
    for number, (name, (make, states)) in enumerate(MADE.items()):
        for is_translated in (False, True):
            ends = Ends(family, 2 * number + is_translated, is_translated)
            known = DROPPED_BY_NAT.get(name, states) if is_translated else states
            found[name, is_translated] = (make(ends), known)
    own = of_ipv4 if family is Family.IP else of_ipv6
    for number in range(4):
        for place, (name, made) in enumerate(own(Ends(family, 100 + number, False)).items()):
            if place == number:
                found[name, False] = made
    return found


def rules_of(family: Family) -> str:
    rules = (
        *STATE_RULES,
        "*nat",
        ":PREROUTING ACCEPT [0:0]",
        f"-A PREROUTING -d {SERVICE[family]} -j DNAT --to-destination {SERVER[family]}",
        "COMMIT",
        "",
    )
    return "\n".join(rules)


def left(
    loader: Loader, family: Family, sent: Sequence[Sequence_], sysctls: dict[str, str] | None = None
) -> list[list[bytes | None]]:
    """Return what leaves for each packet of each connection."""
    node = replace(node_of(family), sysctls=sysctls or {})
    with Worker(StartWith(node, loader)) as worker:
        found = []
        for packets in sent:
            answers = [worker.ask(("send", device, [packet])) for device, packet in packets]
            found.append([answer[0] if answer else None for answer in answers])
    return found


def both(
    family: Family, sent: Sequence[Sequence_], sysctls: dict[str, str] | None = None
) -> tuple[list[list[bytes | None]], list[list[bytes | None]]]:
    """Return what leaves iptables-legacy and the tc program."""
    text = rules_of(family)
    program = emit(lower(read_ruleset(text.encode(), name="rules", family=family), level=2))
    legacy = left(IptablesLoader("iptables-legacy", text, family), family, sent, sysctls)
    return legacy, left(TcEbpfLoader(program), family, sent, sysctls)


@pytest.mark.parametrize("verified", [True, False])
@pytest.mark.parametrize("family", Family)
def test_damaged_packets_are_tracked_as_by_iptables(family: Family, verified: bool) -> None:
    cases = sequences(family)
    sysctls = {} if verified else {"net.netfilter.nf_conntrack_checksum": "0"}
    legacy, ours = both(family, [packets for packets, _ in cases.values()], sysctls)
    for name, (_, states), expected, found in zip(cases, cases.values(), legacy, ours, strict=True):
        if verified:
            assert [None if p is None else state_of(family, p) for p in expected] == states, name
        assert found == expected, name


@pytest.mark.parametrize("family", Family)
def test_nat_verifies_the_checksum_of_an_error_that_conntrack_does_not(family: Family) -> None:
    sent = []
    for number, is_translated in enumerate((False, True)):
        e = Ends(family, number, is_translated)
        sent.append((e.there(17), e.error(e.quoted(17), wrong=True), e.error(e.quoted(17))))
    legacy, ours = both(family, sent, {"net.netfilter.nf_conntrack_checksum": "0"})
    states = [[None if p is None else state_of(family, p) for p in packets] for packets in legacy]
    assert states == [[NEW, None, RELATED]] * 2
    assert ours == legacy
