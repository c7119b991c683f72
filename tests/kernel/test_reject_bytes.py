"""REJECT byte for byte: whole packets that the tc program answers with, beside iptables-legacy's own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest

from backends.iptables.backend import IptablesLoader
from backends.model.packet import Packet
from backends.replay.loader import Loader
from backends.replay.worker import Worker
from backends.tc_ebpf import TcEbpfBackend
from backends.tc_ebpf.loader import TcEbpfLoader
from backends.wire.frames import build
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.tcnode import StartWith, node_of
from translate.bpf import emit
from translate.ir import Family, Protocol, TcpFlag, parse_address
from translate.passes import lower
from translate.read import read_ruleset

KINDS = {
    Family.IP: (
        "icmp-net-unreachable",
        "icmp-host-unreachable",
        "icmp-proto-unreachable",
        "icmp-port-unreachable",
        "icmp-net-prohibited",
        "icmp-host-prohibited",
        "icmp-admin-prohibited",
    ),
    Family.IP6: (
        "icmp6-no-route",
        "icmp6-adm-prohibited",
        "icmp6-addr-unreachable",
        "icmp6-port-unreachable",
        "icmp6-policy-fail",
        "icmp6-reject-route",
    ),
}
ENDS = {
    Family.IP: ("10.1.0.1", "192.0.2.200", "10.0.0.1"),
    Family.IP6: ("fd00::1:1", "2001:db8::200", "fd00::1"),
}
"""A client, and what it sends to: somebody behind the node, and the node."""
SIZES = (0, 1, 8, 500, 520, 521, 1200, 1400)
"""Of the payload: around what an ICMP error may quote (``icmp_send``: 576 bytes, ``icmp6_send``: 1280)."""


@pytest.fixture(scope="module", autouse=True)
def _needs_bcc() -> None:
    require(TcEbpfBackend())


def rules_of(family: Family) -> str:
    """The n-th kind of error for UDP and TCP to port 1000 + n, RSTs for port 2000."""
    answers = [
        f"-A {chain} -p {proto} -m {proto} --dport {1000 + n} -j REJECT --reject-with {kind}"
        for chain in ("INPUT", "FORWARD")
        for proto in ("udp", "tcp")
        for n, kind in enumerate(KINDS[family])
    ]
    resets = [
        f"-A {chain} -p tcp -m tcp --dport 2000 -j REJECT --reject-with tcp-reset"
        for chain in ("INPUT", "FORWARD")
    ]
    return "\n".join(
        ("*filter", ":INPUT ACCEPT [0:0]", ":FORWARD ACCEPT [0:0]", *answers, *resets, "COMMIT", "")
    )


def packets_of(family: Family) -> Iterator[tuple[str, bytes]]:
    client, *targets = (parse_address(family, text) for text in ENDS[family])
    sports = itertools.count(20000)
    for target, where in zip(targets, ("forwarded", "delivered"), strict=True):
        plain = Packet(family=family, src=client, dst=target, proto=Protocol.UDP)
        for n, kind in enumerate(KINDS[family]):
            for size in SIZES if n == 3 else (8,):
                packet = replace(plain, sport=next(sports), dport=1000 + n, payload=bytes(range(256)) * 6)
                packet = replace(packet, payload=packet.payload[:size])
                yield f"{where} udp {kind} {size}", build(packet)
            syn = replace(
                plain, proto=Protocol.TCP, sport=next(sports), dport=1000 + n, flags=TcpFlag.SYN, seq=7
            )
            yield f"{where} tcp {kind}", build(syn)
        for name, flags, payload in (
            ("SYN", TcpFlag.SYN, b""),
            ("SYN with data", TcpFlag.SYN, b"early"),
            ("ACK", TcpFlag.ACK, b""),
            ("ACK with data", TcpFlag.ACK | TcpFlag.PSH, b"hello" * 100),
            ("FIN", TcpFlag.FIN | TcpFlag.ACK, b""),
            ("RST", TcpFlag.RST, b""),
        ):
            segment = replace(
                plain,
                proto=Protocol.TCP,
                sport=next(sports),
                dport=2000,
                flags=flags,
                seq=0xFFFFFFF0,
                payload=payload,
            )
            if flags & TcpFlag.ACK:
                segment = replace(segment, ack=0x01020304)
            yield f"{where} reset {name}", build(segment)
    yield from odd_headers(family, replace(plain, sport=next(sports), dport=1003, payload=b"payload!"))


def odd_headers(family: Family, packet: Packet) -> Iterator[tuple[str, bytes]]:
    """A type of service, a small TTL, options and extension headers."""
    data = bytearray(build(packet))
    if family is Family.IP:
        for tos in (0x10, 0x1C, 0x03, 0xB8, 0xFF):
            data[1] = tos
            yield f"TOS {tos:#x}", summed(bytes(data))
        data[1], data[8] = 0, 2
        yield "TTL 2", summed(bytes(data))
        data[8] = 64
        for words in (1, 2, 10):
            options = bytes([1]) * (4 * words - 1) + b"\0"
            longer = bytearray(data[:20] + options + data[20:])
            longer[0] = 0x45 + words
            longer[2:4] = len(longer).to_bytes(2, "big")
            yield f"{words} words of options", summed(bytes(longer))
        return
    for label in (b"\x6a\xb0\x00\x00", b"\x60\x01\x23\x45", b"\x6f\xff\xff\xff"):
        yield f"class and label {label.hex()}", label + bytes(data[4:])
    yield "hop limit 2", bytes(data[:7]) + b"\x02" + bytes(data[8:])
    for name, kind in (("hop-by-hop", 0), ("destination options", 60)):
        header = bytes([data[6], 0, 1, 4, 0, 0, 0, 0])  # PadN
        length = (len(data) - 40 + 8).to_bytes(2, "big")
        yield name, bytes(data[:4]) + length + bytes([kind]) + bytes(data[7:40]) + header + bytes(data[40:])


def summed(packet: bytes) -> bytes:
    header = bytearray(packet[: (packet[0] & 15) * 4])
    header[10:12] = b"\0\0"
    total = sum(int.from_bytes(header[i : i + 2], "big") for i in range(0, len(header), 2))
    header[10:12] = (0xFFFF - total % 0xFFFF).to_bytes(2, "big")
    return bytes(header) + packet[len(header) :]


def comparable(family: Family, answer: bytes) -> bytes:
    """Without what the kernel draws: the identification of an IPv4 header with an ICMP error."""
    if family is Family.IP6 or answer[9] != Protocol.ICMP:
        return answer
    return answer[:4] + b"\0\0" + answer[6:10] + b"\0\0" + answer[12:]


def answers(loader: Loader, family: Family) -> dict[str, list[str]]:
    # The labels that the kernel gives its own packets are a hash with a secret of its own.
    node = replace(node_of(family), sysctls={"net.ipv6.auto_flowlabels": "0"} if family is Family.IP6 else {})
    with Worker(StartWith(node, loader)) as worker:
        return {
            name: [comparable(family, data).hex() for data in worker.ask(("send", "pod0", [packet]))]
            for name, packet in packets_of(family)
        }


@pytest.mark.parametrize("family", list(Family))
def test_every_answer_has_the_bytes_of_iptables(family: Family) -> None:
    text = rules_of(family)
    program = emit(lower(read_ruleset(text.encode(), name="rules", family=family), level=2))
    expected = answers(IptablesLoader("iptables-legacy", text, family), family)
    found = answers(TcEbpfLoader(program), family)
    different = {name: (expected[name], found[name]) for name in expected if expected[name] != found[name]}
    assert different == {}
    # Whatever is sent is answered once, but for a RST.
    assert {name for name, seen in expected.items() if len(seen) != 1} == {
        "forwarded reset RST",
        "delivered reset RST",
    }
