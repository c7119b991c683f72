"""The tc program's connections: many at once, more than there is room for, and what is counted of them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest

from backends.model.packet import Packet
from backends.replay.worker import Worker
from backends.tc_ebpf import TcEbpfBackend
from backends.wire.frames import build
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.tcnode import Server, tc_node
from translate.bpf import COUNTERS
from translate.ir import Family, Protocol, TcpFlag, parse_address

MASQUERADE = ("*nat", ":POSTROUTING ACCEPT [0:0]", "-A POSTROUTING -o eth0 -j MASQUERADE", "COMMIT")
STATEFUL = (
    "*filter",
    ":FORWARD ACCEPT [0:0]",
    "-A FORWARD -i eth0 -m conntrack --ctstate NEW,INVALID -j DROP",
    "COMMIT",
)
BY_SERVER = (
    "*nat",
    ":POSTROUTING ACCEPT [0:0]",
    "-A POSTROUTING -d 192.0.2.200/32 -p udp -j SNAT --to-source 192.0.2.9:50000-54095",
    "-A POSTROUTING -d 192.0.2.201/32 -p udp -j SNAT --to-source 192.0.2.9:60000-60199",
    "COMMIT",
    "*filter",
    ":FORWARD ACCEPT [0:0]",
    "-A FORWARD -d 192.0.2.202/32 -p udp -j REJECT",
    "COMMIT",
)
"""For three tests, which send to a server each: one program is compiled."""
CLIENTS = {Family.IP: ("10.1.0.0", "192.0.2.200"), Family.IP6: ("fd00::1:0", "2001:db8::200")}
ADDRESS = {Family.IP: "192.0.2.2", Family.IP6: "2001:db8::2"}
KEY = {Family.IP: 16, Family.IP6: 48}
"""The size of a ``struct tuple``."""


@pytest.fixture(scope="module", autouse=True)
def _needs_bcc() -> None:
    require(TcEbpfBackend())


def first_packets(
    family: Family, proto: Protocol, *, clients: int, ports: int, other: int = 0
) -> Iterator[Packet]:
    """Every client uses the same source ports: most of them have to get another one.

    They go to the server, or to the address ``other`` places after it.
    """
    base, server = (parse_address(family, text) for text in CLIENTS[family])
    tcp = proto is Protocol.TCP
    for port, client in itertools.product(range(ports), range(clients)):
        yield Packet(
            family=family,
            src=base + client,
            dst=server + other,
            proto=proto,
            sport=40000 + port,
            dport=80,
            flags=TcpFlag.SYN if tcp else TcpFlag(0),
            seq=client << 16 | port if tcp else 0,
            payload=b"" if tcp else (client << 16 | port).to_bytes(8, "big"),
        )


def ends(family: Family, data: bytes) -> tuple[bytes, bytes, int, int]:
    """Source, destination and ports of a packet as it left."""
    low, size, header = (12, 4, 20) if family is Family.IP else (8, 16, 40)
    source, target = data[low : low + size], data[low + size : low + 2 * size]
    sport, dport = (int.from_bytes(data[at : at + 2], "big") for at in (header, header + 2))
    return source, target, sport, dport


@pytest.mark.parametrize(
    ("family", "proto"),
    [
        (Family.IP, Protocol.UDP),
        (Family.IP6, Protocol.TCP),
        pytest.param(Family.IP, Protocol.TCP, marks=pytest.mark.slow),
        pytest.param(Family.IP6, Protocol.UDP, marks=pytest.mark.slow),
    ],
)
def test_28000_connections_through_one_address(family: Family, proto: Protocol) -> None:
    """None is lost and no two share a port, on the wire and in the maps."""
    packets = [build(p) for p in first_packets(family, proto, clients=280, ports=100)]
    with tc_node(*MASQUERADE, family=family) as node:
        left = [ends(family, data) for data in node.ask(("send", "pod0", packets))]
        counted = node.ask(("counters",))
        conns = dict(node.ask(("entries", "conns")))
        replies = dict(node.ask(("entries", "replies")))
    assert len(left) == 28000
    address = parse_address(family, ADDRESS[family]).to_bytes(family.bits // 8, "big")
    assert {source for source, *_ in left} == {address}
    assert len({sport for _, _, sport, _ in left}) == 28000
    assert len(conns) == len(replies) == 28000
    size = KEY[family]
    assert all(conns[orig][size : 2 * size] == reply for reply, orig in replies.items())
    assert {name: n for name, n in counted.items() if n and name != "long-search"} == {"entered": 28000}


def test_two_devices_at_once_choose_different_ports() -> None:
    """4,096 ports for 4,000 connections, half of them from each of two CPUs: the search goes to the last."""
    packets = [build(p) for p in first_packets(Family.IP, Protocol.UDP, clients=40, ports=100)]
    with tc_node(*BY_SERVER) as node:
        halves = (("pod0", packets[::2]), ("eth0", packets[1::2]))
        left = [ends(Family.IP, data) for data in node.ask(("send_from_both", *halves))]
        counted = node.ask(("counters",))
    ports = [sport for _, _, sport, _ in left]
    assert len(set(ports)) == len(ports)
    assert len(ports) + counted["no-port"] == 4000
    assert counted["no-port"] <= 40  # each only after 1,024 ports were taken
    assert counted["entered"] == len(ports)
    assert counted["clash"] == 0


def test_without_a_free_port_packets_are_dropped_and_counted() -> None:
    packets = [build(p) for p in first_packets(Family.IP, Protocol.UDP, clients=50, ports=5, other=1)]
    with tc_node(*BY_SERVER) as node:
        left = [ends(Family.IP, data) for data in node.ask(("send", "pod0", packets))]
        counted = node.ask(("counters",))
    assert sorted(sport for _, _, sport, _ in left) == list(range(60000, 60200))
    assert counted["no-port"] == 50
    assert counted["entered"] == 200


def pairs(node: Worker) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
    """The reply of each connection by its original tuple, and the other way round, as the maps have them."""
    size = KEY[Family.IP]
    conns = {orig: value[size : 2 * size] for orig, value in node.ask(("entries", "conns"))}
    return conns, dict(node.ask(("entries", "replies")))


def reply_to(data: bytes) -> Packet:
    source, target, sport, dport = ends(Family.IP, data)
    src, dst = int.from_bytes(target, "big"), int.from_bytes(source, "big")
    return Packet(
        family=Family.IP, src=src, dst=dst, proto=Protocol.UDP, sport=dport, dport=sport, payload=data[28:]
    )


def test_more_connections_than_there_is_room_for() -> None:
    """All new ones pass. Replies to those that are gone belong to nothing, and each is counted."""
    packets = [build(p) for p in first_packets(Family.IP, Protocol.UDP, clients=50, ports=10)]
    with tc_node(*STATEFUL, connections=64) as node:
        left = node.ask(("send", "pod0", packets))
        assert len(left) == 500
        conns, replies = pairs(node)
        assert 0 < len(conns) <= 64
        assert 0 < len(replies) <= 64
        whole = {orig for reply, orig in replies.items() if conns.get(orig) == reply}
        orphans = [reply for reply, orig in replies.items() if conns.get(orig) != reply]
        before = node.ask(("counters",))
        assert before["entered"] == 500
        back = node.ask(("send", "eth0", [build(reply_to(data)) for data in left]))
        assert len(back) == len(whole)
        counted = node.ask(("counters",))
        assert counted["evicted"] - before["evicted"] == len(orphans)
        assert counted["entered"] == 500
        assert not any(counted[name] for name in COUNTERS if name not in ("entered", "evicted"))


def test_a_connection_whose_reply_is_gone_is_reachable_again() -> None:
    """Its next packet sees to it, a second later; replies to it pass from then on."""
    packets = [build(p) for p in first_packets(Family.IP, Protocol.UDP, clients=32, ports=1)]
    with tc_node(*STATEFUL, connections=64) as node:
        left = node.ask(("send", "pod0", packets))
        node.ask(("run", forget_replies))
        assert node.ask(("send", "eth0", [build(reply_to(data)) for data in left])) == []
        assert len(node.ask(("send", "pod0", packets))) == 32
        time.sleep(1.2)
        assert len(node.ask(("send", "pod0", packets))) == 32
        assert node.ask(("counters",))["regained"] == 32
        assert len(node.ask(("send", "eth0", [build(reply_to(data)) for data in left]))) == 32
        assert node.ask(("counters",))["entered"] == 32


def forget_replies(server: Server) -> None:
    server.dataplane().map("replies").clear()


def test_a_connection_gives_way_to_one_that_has_its_port_by_now() -> None:
    """Two clients, one port, and the first one's reply forgotten: its next packet gets a port of its own."""
    first, second = (build(p) for p in first_packets(Family.IP, Protocol.UDP, clients=2, ports=1))
    with tc_node(*MASQUERADE) as node:
        (one,) = node.ask(("send", "pod0", [first]))
        node.ask(("run", forget_replies))
        (two,) = node.ask(("send", "pod0", [second]))
        assert ends(Family.IP, one)[2] == ends(Family.IP, two)[2] == 40000
        time.sleep(1.2)
        (again,) = node.ask(("send", "pod0", [first]))
        assert ends(Family.IP, again)[2] != 40000
        counted = node.ask(("counters",))
        assert (counted["ousted"], counted["entered"]) == (1, 3)
        (back,) = node.ask(("send", "eth0", [build(reply_to(two))]))
        assert ends(Family.IP, back)[1] == ends(Family.IP, second)[0]


def fragment(packet: bytes, *, first: bool) -> bytes:
    """One half of an IPv4 packet of eight bytes of payload behind its UDP header."""
    flags = (0x2000 if first else 0x0001).to_bytes(2, "big")
    body = packet[20:28] if first else packet[28:]
    header = bytearray(packet[:2] + (20 + len(body)).to_bytes(2, "big") + packet[4:6] + flags + packet[8:20])
    header[10:12] = b"\0\0"
    total = sum(int.from_bytes(header[i : i + 2], "big") for i in range(0, 20, 2))
    header[10:12] = (0xFFFF - total % 0xFFFF).to_bytes(2, "big")
    return bytes(header) + body


def test_fragments_are_dropped_and_counted() -> None:
    """The first and the others, before any rule: conntrack would have put them together."""
    (packet,) = (build(p) for p in first_packets(Family.IP, Protocol.UDP, clients=1, ports=1))
    with tc_node(*STATEFUL) as node:
        halves = [fragment(packet, first=True), fragment(packet, first=False)]
        assert node.ask(("send", "pod0", halves)) == []
        counted = node.ask(("counters",))
    assert {name: n for name, n in counted.items() if n} == {"fragment": 2}


def test_answers_are_counted() -> None:
    packets = [build(p) for p in first_packets(Family.IP, Protocol.UDP, clients=3, ports=1, other=2)]
    with tc_node(*BY_SERVER) as node:
        answers = node.ask(("send", "pod0", packets))
        counted = node.ask(("counters",))
    assert [data[9] for data in answers] == [Protocol.ICMP] * 3
    assert {name: n for name, n in counted.items() if n} == {"rejected": 3}
