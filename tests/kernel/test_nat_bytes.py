"""NAT byte for byte: what the tc program rewrites, and errors that quote it, beside iptables-legacy's.

Checksums are real ones: what comes in by a TAP device has no offload.
"""

from __future__ import annotations

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

CLIENT = {Family.IP: "10.1.0.1", Family.IP6: "fd00::1:1"}
SERVICE = {Family.IP: "203.0.113.80", Family.IP6: "2001:db8:f::80"}
SERVER = {Family.IP: "192.0.2.200", Family.IP6: "2001:db8::200"}
SOURCE = {Family.IP: "192.0.2.9", Family.IP6: "2001:db8::9"}
ICMP = {Family.IP: Protocol.ICMP, Family.IP6: Protocol.ICMPV6}


@pytest.fixture(scope="module", autouse=True)
def _needs_bcc() -> None:
    require(TcEbpfBackend())


def rules_of(family: Family) -> str:
    service, server = SERVICE[family], SERVER[family]
    with_port = f"[{server}]:8080" if family is Family.IP6 else f"{server}:8080"
    rules = [
        f"-A PREROUTING -d {service} -p {proto} -j DNAT --to-destination {with_port}"
        for proto in ("tcp", "udp", "sctp")
    ]
    return "\n".join(
        (
            "*nat",
            ":PREROUTING ACCEPT [0:0]",
            ":POSTROUTING ACCEPT [0:0]",
            *rules,
            f"-A PREROUTING -d {service} -j DNAT --to-destination {server}",
            f"-A POSTROUTING -o eth0 -j SNAT --to-source {SOURCE[family]}",
            "COMMIT",
            "",
        )
    )


def firsts(family: Family) -> dict[str, bytes]:
    """The first packet of a connection of each protocol."""
    src, dst = parse_address(family, CLIENT[family]), parse_address(family, SERVICE[family])
    plain = Packet(family=family, src=src, dst=dst, proto=Protocol.UDP, sport=40000, dport=80, payload=b"odd")
    echo = 128 if family is Family.IP6 else 8
    found = {
        "udp": build(plain),
        "udp, long": build(replace(plain, sport=40001, payload=bytes(range(250)) * 5)),
        "udplite": build(replace(plain, proto=Protocol.UDPLITE)),
        "sctp": build(replace(plain, proto=Protocol.SCTP)),
        "tcp": build(replace(plain, proto=Protocol.TCP, flags=TcpFlag.SYN, seq=99, payload=b"")),
        "echo": build(
            replace(
                plain, proto=ICMP[family], sport=None, dport=None, icmp_type=echo, icmp_code=0, icmp_id=77
            )
        ),
    }
    if family is Family.IP:
        bare = bytearray(build(replace(plain, sport=40002)))
        bare[26:28] = b"\0\0"
        found["udp without a checksum"] = bytes(bare)
    return found


def swapped(family: Family, data: bytes) -> bytes:
    """The answer to a packet that left: addresses and ports the other way round, which no sum notices."""
    low, size, header = (12, 4, 20) if family is Family.IP else (8, 16, 40)
    source, target = data[low : low + size], data[low + size : low + 2 * size]
    proto = data[9 if family is Family.IP else 6]
    rest = data[header:]
    if proto == ICMP[family]:
        answer = bytearray(rest)
        answer[0] = 129 if family is Family.IP6 else 0
        before, after = rest[0] << 8 | rest[1], answer[0] << 8 | answer[1]
        check = (~int.from_bytes(rest[2:4], "big") & 0xFFFF) + (~before & 0xFFFF) + after
        answer[2:4] = (~((check & 0xFFFF) + (check >> 16)) & 0xFFFF).to_bytes(2, "big")
        rest = bytes(answer)
    elif proto == Protocol.SCTP:
        rest = rest[2:4] + rest[:2] + rest[4:8] + crc(rest[2:4] + rest[:2] + rest[4:8] + bytes(4) + rest[12:])
        rest += data[header + 12 :]
    else:
        rest = rest[2:4] + rest[:2] + rest[4:]
    return data[:low] + target + source + rest


def crc(packet: bytes) -> bytes:
    """CRC32c as SCTP carries it (RFC 9260, appendix A)."""
    value = 0xFFFFFFFF
    for byte in packet:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return (value ^ 0xFFFFFFFF).to_bytes(4, "little")


def error_about(family: Family, data: bytes) -> bytes:
    """A router's error about a packet that left: too big."""
    low, size, header = (12, 4, 20) if family is Family.IP else (8, 16, 40)
    router, back = data[low + size : low + 2 * size], data[low : low + size]
    kind = b"\x02\x00" if family is Family.IP6 else b"\x03\x04"
    body = kind + b"\0\0" + (1280).to_bytes(4, "big") + data[: header + 64]
    length = len(body)
    pseudo = router + back + length.to_bytes(4, "big") + bytes([0, 0, 0, 58]) if family is Family.IP6 else b""
    body = body[:2] + summed(pseudo + body) + body[4:]
    if family is Family.IP6:
        return b"\x60\0\0\0" + length.to_bytes(2, "big") + bytes([58, 64]) + router + back + body
    outer = b"\x45\0" + (20 + length).to_bytes(2, "big") + b"\0\1\0\0" + bytes([64, 1])
    return outer + summed(outer + b"\0\0" + router + back) + router + back + body


def summed(data: bytes) -> bytes:
    data += b"\0" * (len(data) % 2)
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    return (0xFFFF - total % 0xFFFF).to_bytes(2, "big")


def ways(loader: Loader, family: Family) -> dict[str, list[str]]:
    """Packets that leave: one, its answer, and the errors of routers about both."""
    node = replace(node_of(family), sysctls={"net.netfilter.nf_conntrack_checksum": "0"})
    with Worker(StartWith(node, loader)) as worker:

        def through(device: str, packet: bytes) -> bytes:
            (left,) = worker.ask(("send", device, [packet]))
            assert isinstance(left, bytes)
            return left

        found = {}
        for name, packet in firsts(family).items():
            there = through("pod0", packet)
            back = through("eth0", swapped(family, there))
            errors = (
                through("eth0", error_about(family, there)),
                through("pod0", error_about(family, back)),
            )
            found[name] = [data.hex() for data in (there, back, *errors)]
    return found


@pytest.mark.parametrize("family", [Family.IP, pytest.param(Family.IP6, marks=pytest.mark.slow)])
def test_what_is_rewritten_has_the_bytes_of_iptables(family: Family) -> None:
    text = rules_of(family)
    program = emit(lower(read_ruleset(text.encode(), name="rules", family=family), level=2))
    expected = ways(IptablesLoader("iptables-legacy", text, family), family)
    found = ways(TcEbpfLoader(program), family)
    assert {name: (expected[name], found[name]) for name in expected if expected[name] != found[name]} == {}
