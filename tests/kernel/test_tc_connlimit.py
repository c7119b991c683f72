"""``-m connlimit`` in the tc program and in iptables-legacy: what becomes of each of many packets."""

from __future__ import annotations

import random
import time

import pytest

from backends.iptables.backend import IptablesLoader
from backends.model.packet import Packet
from backends.replay.loader import JIFFIES, Loader
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

PACKETS = 300
CLIENTS = {Family.IP: "10.1.0.0", Family.IP6: "fd00::1:0"}
SERVERS = {Family.IP: "192.0.2.200", Family.IP6: "2001:db8::200"}
NETWORK = {Family.IP: "24", Family.IP6: "112"}
SEEN = {Family.IP: "TTL --ttl-set", Family.IP6: "HL --hl-set"}
FLAGS = (
    TcpFlag.SYN,
    TcpFlag.SYN,
    TcpFlag.SYN,
    TcpFlag.ACK,
    TcpFlag.ACK,
    TcpFlag.ACK | TcpFlag.FIN,
    TcpFlag.RST,
)
RULES = """\
*mangle
-A POSTROUTING -p tcp -m tcp --dport 80 -m connlimit --connlimit-above 2 --connlimit-mask {net} -j {seen} 30
-A POSTROUTING -p tcp -m tcp --dport 81 -m connlimit --connlimit-upto 2 --connlimit-daddr -j {seen} 31
-A POSTROUTING -p udp -m connlimit ! --connlimit-above 3 --connlimit-mask 0 -j {seen} 32
COMMIT
*filter
-A FORWARD -p tcp -m tcp --dport 80 --syn -m connlimit --connlimit-above 2 -j DROP
-A FORWARD -p udp -m state --state NEW -m connlimit --connlimit-above 2 -j DROP
-A FORWARD -p tcp -m state --state ESTABLISHED -m connlimit --connlimit-above 1 -j ACCEPT
COMMIT
"""


@pytest.fixture(scope="module", autouse=True)
def _needs_bcc() -> None:
    require(TcEbpfBackend())


def drawn(family: Family) -> list[tuple[str, bytes]]:
    """Packets of a few clients and their servers, in both directions, with the device where each comes in."""
    dice = random.Random(f"{family.value} 7")
    client, server = (parse_address(family, where[family]) for where in (CLIENTS, SERVERS))
    made = []
    for _ in range(PACKETS):
        proto = dice.choice((Protocol.TCP, Protocol.TCP, Protocol.UDP))
        ends = (client + dice.randrange(3), server + dice.randrange(2))
        ports = (dice.choice((4000, 4001, 4002)), dice.choice((80, 81)))
        back = dice.random() < 0.4
        flags = dice.choice(FLAGS)
        if back and flags is TcpFlag.SYN:
            flags = TcpFlag.SYN | TcpFlag.ACK
        packet = Packet(
            family=family,
            src=ends[back],
            dst=ends[not back],
            proto=proto,
            sport=ports[back],
            dport=ports[not back],
            flags=flags if proto is Protocol.TCP else TcpFlag(0),
            seq=1000 + (flags is not TcpFlag.SYN and not flags & TcpFlag.SYN),
            ack=1001 if flags & TcpFlag.ACK else 0,
        )
        made.append(("eth0" if back else "pod0", build(packet)))
    return made


def left(loader: Loader, family: Family) -> list[list[str]]:
    """The packets that leave for each that is sent; each is in a jiffy of its own."""
    found = []
    with Worker(StartWith(node_of(family), loader)) as worker:
        for device, packet in drawn(family):
            found.append([one.hex() for one in worker.ask(("send", device, [packet]))])
            time.sleep(JIFFIES)
    return found


@pytest.mark.parametrize("family", [Family.IP, pytest.param(Family.IP6, marks=pytest.mark.slow)])
def test_the_same_packets_are_above_a_limit(family: Family) -> None:
    text = RULES.format(net=NETWORK[family], seen=SEEN[family])
    variant = "iptables-legacy" if family is Family.IP else "ip6tables-legacy"
    expected = left(IptablesLoader(variant, text, family), family)
    program = emit(lower(read_ruleset(text.encode(), name="rules", family=family), level=2))
    found = left(TcEbpfLoader(program), family)
    different = [n for n, (a, b) in enumerate(zip(expected, found, strict=True)) if a != b]
    assert different == []
    place = 16 if family is Family.IP else 14
    limits = {int(one[place : place + 2], 16) for there in expected for one in there}
    assert {30, 31, 32} < limits
    assert [] in expected
