"""``-m time`` on the kernel, whose clock no test can set: rules around the present with hours of margin."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta

import pytest

from backends.iptables.backend import IptablesBackend
from backends.model.contract import Backend, Job
from backends.model.flow import Flow, Send
from backends.model.node import Address, Interface, Node
from backends.model.outcome import Verdict
from backends.model.packet import Packet
from backends.nftables.backend import NftablesBackend
from backends.simulator.simulate import Simulation
from backends.tc_ebpf import TcEbpfBackend
from harness.diff.compare import compare
from tests.kernel.helpers.availability import require
from translate.ir import Family, Protocol, Ruleset, parse_address
from translate.read import read_ruleset

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
]

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
NOW = datetime.fromtimestamp(int(time.time()), UTC)
NODE = Node(
    tuple(
        Interface(name, (Address(Family.IP, parse_address(Family.IP, address), 24),))
        for name, address in (("eth0", "192.168.0.2"), ("pod0", "10.244.0.1"))
    )
)


def daytime(moment: datetime) -> str:
    return f"{moment:%H:%M:%S}"


def weekdays(*moments: datetime) -> str:
    return ",".join(sorted({f"{moment:%a}" for moment in moments}))


AROUND = (NOW - 3 * HOUR, NOW + 3 * HOUR)
"""Today, and tomorrow or yesterday if midnight is near."""
TODAY = weekdays(*AROUND)
FAR = weekdays(NOW + 3 * DAY, NOW - 3 * DAY)
NEAR = f"--timestart {daytime(NOW - 3 * HOUR)} --timestop {daytime(NOW + 3 * HOUR)}"
AWAY = f"--timestart {daytime(NOW + 3 * HOUR)} --timestop {daytime(NOW - 3 * HOUR)}"


def over_midnight() -> dict[str, bool]:
    """Return matches of the day on which an interval over midnight began: today, or yesterday."""
    results: dict[str, bool] = {}
    today, yesterday = weekdays(NOW), weekdays(NOW - DAY)
    number, before = NOW.day, (NOW - DAY).day
    if NOW.hour >= 6:
        late = f"--timestart {daytime(NOW - 3 * HOUR)} --timestop {daytime(NOW - 6 * HOUR)} --contiguous"
        results |= {f"{late} --weekdays {today}": True, f"{late} --weekdays {yesterday}": False}
        results |= {f"{late} --monthdays {number}": True, f"{late} --monthdays {before}": False}
    if NOW.hour < 18:
        early = f"--timestart {daytime(NOW + 6 * HOUR)} --timestop {daytime(NOW + 3 * HOUR)} --contiguous"
        results |= {f"{early} --weekdays {yesterday}": True, f"{early} --weekdays {today}": False}
        results |= {f"{early} --monthdays {before}": True, f"{early} --monthdays {number}": False}
    return results


MATCH = (
    "",
    f"--datestart {NOW - 2 * DAY:%Y-%m-%dT%H:%M:%S}",
    f"--datestop {NOW + 2 * DAY:%Y-%m-%dT%H:%M:%S}",
    f"--datestart {NOW - 2 * DAY:%Y-%m-%d} --datestop {NOW + 2 * DAY:%Y-%m-%d}",
    NEAR,
    f"--weekdays {TODAY}",
    f"! --weekdays {FAR}",
    f"{NEAR} --weekdays {TODAY}",
)
MISS = (
    f"--datestart {NOW + 2 * DAY:%Y-%m-%dT%H:%M:%S}",
    f"--datestop {NOW - 2 * DAY:%Y-%m-%dT%H:%M:%S}",
    AWAY,
    f"! --weekdays {TODAY}",
    f"--weekdays {FAR}",
    "! --weekdays 1,2,3,4,5,6,7",
    f"{AWAY} --weekdays {TODAY}",
)
MONTHDAYS = {
    f"--monthdays {','.join(sorted({str(moment.day) for moment in AROUND}))}": True,
    f"! --monthdays {','.join(sorted({str(moment.day) for moment in AROUND}))}": False,
    f"--monthdays {(NOW + 10 * DAY).day}": False,
    f"! --monthdays {(NOW + 10 * DAY).day}": True,
}
RESULTS = {**dict.fromkeys(MATCH, True), **dict.fromkeys(MISS, False), **over_midnight(), **MONTHDAYS}


def ruleset(words: tuple[str, ...]) -> Ruleset:
    """Return rules of which the Nth drops packets to port N if its match holds."""
    rules = (
        f"-A FORWARD -p udp -m udp --dport {n} -m time {each} -j DROP" for n, each in enumerate(words, 1)
    )
    text = "\n".join(("*filter", ":FORWARD ACCEPT [0:0]", *rules, "COMMIT", ""))
    return read_ruleset(text.encode(), name="rules")


def flow(port: int) -> Flow:
    src, dst = (parse_address(Family.IP, text) for text in ("192.168.0.9", "10.244.0.9"))
    packet = Packet(family=Family.IP, src=src, dst=dst, proto=Protocol.UDP, sport=1000, dport=port)
    return Flow(id=str(port), steps=(Send(packet=packet, entry="eth0"),))


def different(backend: Backend, results: dict[str, bool], level: int = 0) -> list[str]:
    """Return the matches whose result in a backend is not that of the simulator."""
    require(backend)
    job = Job(rules=ruleset(tuple(results)), node=NODE, level=level)
    flows = [flow(port) for port in range(1, len(results) + 1)]
    simulation = Simulation(job)
    with backend.open(job) as session:
        seen = list(session.replay(flows))
    return [
        words
        for words, each, got in zip(results, flows, seen, strict=True)
        if compare(each, simulation.simulate(each), got)
    ]


def test_the_simulator_has_the_expected_results() -> None:
    simulation = Simulation(Job(rules=ruleset(tuple(RESULTS)), node=NODE))
    for port, (words, expected) in enumerate(RESULTS.items(), 1):
        (branch,) = simulation.simulate(flow(port)).branches
        assert (branch.outcomes[0].verdict is Verdict.DROP) is expected, words


@pytest.mark.parametrize("level", [0, 2])
def test_tc_ebpf(level: int) -> None:
    assert different(TcEbpfBackend(), RESULTS, level) == []


@pytest.mark.parametrize("name", ["iptables-legacy", "iptables-nft"])
def test_iptables(name: str) -> None:
    assert different(IptablesBackend(name), RESULTS) == []


@pytest.mark.parametrize("level", [0, 1, 2])
def test_nftables(level: int) -> None:
    assert different(NftablesBackend(), RESULTS, level) == []
