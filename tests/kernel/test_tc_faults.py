"""Real connections when something around the tc program fails, compared with iptables-legacy.

Pods ``pod1`` and ``pod3`` serve on all the time; ``pod2``, the only endpoint of some services, has the fault.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from backends.iptables.backend import IptablesBackend
from backends.replay.worker import Worker
from backends.tc_ebpf import TcEbpfBackend
from tests.kernel.helpers.availability import require
from tests.lab.traffic.clients import Connect, ConnectionResults
from tests.lab.traffic.host import Host, Request, Tool
from tests.lab.traffic.interrupted import BeginLoad, KillLoad, NextStep
from tests.lab.traffic.plan import (
    CLIENTS,
    GATEWAY,
    LOCAL,
    NODE,
    STICKY,
    TCP,
    UDP,
    Target,
    all_rules,
    another_shape,
    pod_address,
)
from tests.lab.traffic.streams import BeginStreams, CountAnswers, EndStreams, Kept
from tests.lab.traffic.subjects import Figures, Load, LoadSmall, Refresh, Rules
from tests.lab.traffic.topology import Topology
from translate.ir import Family

TC = "tc-ebpf"
PLACES = ("client", "pod1", "node")
FAULTY = {TCP: ("pod2",), UDP: ("pod2",), LOCAL: ("pod2",), STICKY: ("pod1", "pod3")}
SOME = 20
MANY = 1500
LONG = 9.0
"""Seconds, more than the kernel asks for a neighbour: three times, ``RETRANS`` milliseconds apart."""
RETRANS = "300"
SHORT = 2.0

Failures = Mapping[str, frozenset[str]]
"""By place: how connections of TCP to the pod with the fault fail."""

_SILENT = frozenset({"no connection"})
_REPORTED = frozenset({"No route to host"})


@dataclass
class Ground:
    """The topology, and processes that ask from every place, for either protocol."""

    subject: str
    topology: Topology
    workers: dict[tuple[str, Target, Family], Worker] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def worker(self, place: str, target: Target, family: Family) -> Worker:
        key = place, target, family
        if key not in self.workers:
            self.workers[key] = self.topology.join(place)
        return self.workers[key]

    def ask(
        self,
        place: str,
        target: Target,
        family: Family,
        address: str,
        port: int,
        count: int,
        seconds: float = LONG,
    ) -> ConnectionResults:
        first = next(self.numbers) * MANY
        worker = self.worker(place, target, family)
        sources = {"client": CLIENTS[family][:8], "node": (NODE[family],)}
        asked: ConnectionResults = worker.ask(
            Connect(
                family=family,
                protocol=target.protocol,
                address=address,
                port=port,
                sources=sources.get(place) or (pod_address(family, place),),
                count=count,
                first=first,
                seconds=seconds,
            )
        )
        return asked

    def faulty(
        self, seconds: float, silence: float = LONG
    ) -> dict[tuple[str, Target, Family], ConnectionResults]:
        """Connect the services of the pod with the fault, from everywhere at once.

        It waits ``seconds`` for an answer or an error; with UDP, of which no error comes, ``silence``.
        """
        every = list(itertools.product(PLACES, (TCP, UDP), Family))
        for one in every:
            self.worker(*one)  # in this thread, with which they end
        with ThreadPoolExecutor(len(every)) as pool:
            asking = {
                (place, target, family): pool.submit(
                    self.ask, place, target, family, target.cluster_ip(family), target.port, 3, limit
                )
                for place, target, family in every
                for limit in (seconds if target is TCP else silence,)
            }
            return {key: one.result() for key, one in asking.items()}

    def insist_on_failures(
        self, wanted: Failures, seconds: float = SHORT, unsure: Collection[str] = ()
    ) -> None:
        """Nobody is served; of what is wanted, those who are ``unsure`` may hear nothing."""
        said: dict[str, set[str]] = {place: set() for place in PLACES}
        for (place, target, family), asked in self.faulty(seconds, SHORT).items():
            assert (place, target.name, family, asked.failed) == (place, target.name, family, 3)
            kinds = {f.rpartition(": ")[2] for f in asked.failures}
            if target is TCP:
                said[place] |= kinds
            else:  # the errors that ICMP reports are not fatal to a socket of UDP
                assert kinds == {"no answer"}
        for place in PLACES:
            # An error that comes while its socket is busy is only noted (tcp_v4_err).
            loud = said[place] - _SILENT
            assert loud == wanted[place] - _SILENT or (place in unsure and not loud), place

    def insist_that_others_go_on(self) -> None:
        for family in Family:
            asked = self.ask("client", STICKY, family, STICKY.cluster_ip(family), STICKY.port, SOME)
            assert (asked.failures, asked.pods.total()) == ([], SOME)

    def insist_that_all_is_well(self) -> None:
        for (place, target, family), asked in self.faulty(LONG).items():
            assert (place, target.name, family, asked.failures) == (place, target.name, family, [])
            assert asked.pods == {"pod2": 3}
        self.insist_that_others_go_on()

    def down(self) -> None:
        self.topology.ip("node", "link set pod2 down")
        self.refresh()

    def up(self) -> None:
        """With a device go its routes, and its addresses of IPv6."""
        self.topology.ip(
            "node", "link set pod2 up", f"address replace {GATEWAY[Family.IP6]}/128 dev pod2 nodad"
        )
        self.routes("replace")
        self.refresh()

    def routes(self, verb: str) -> None:
        self.topology.ip("node", *(f"route {verb} {pod_address(f, 'pod2')} dev pod2" for f in Family))

    def refresh(self) -> None:
        self.topology.ask("node", Refresh())


@pytest.fixture(scope="module", params=["iptables-legacy", TC])
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    subject = request.param
    require(TcEbpfBackend() if subject == TC else IptablesBackend(subject))
    with Topology(StayOnOneProcessor) as topology:
        devices = {f"net__{ip}__neigh__pod2__retrans_time_ms": RETRANS for ip in ("ipv4", "ipv6")}
        topology.sysctls("node", **devices)
        topology.ask("node", Load(subject, all_rules(FAULTY)))
        yield Ground(subject, topology)


@dataclass(frozen=True)
class StayOnOneProcessor(Request):
    """Keeps a process, and so the node's work on the packets that it sends, on one processor."""

    def run(self, host: Host) -> None:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def streams_to(topology: Topology, target: Target, family: Family, address: str, port: int) -> Worker:
    worker = topology.join("client")
    worker.ask(
        BeginStreams(
            family=family,
            protocol=target.protocol,
            address=address,
            port=port,
            sources=CLIENTS[family][8:16],
            count=8,
        )
    )
    return worker


def test_a_neighbour_that_does_not_answer(ground: Ground) -> None:
    topology = ground.topology
    # A forwarded packet waits for the neighbour before tc's POSTROUTING: what the stack reports may be of a
    # connection that is neither masqueraded nor entered yet, which the client does not know.
    unsure = ("client", "pod1") if ground.subject == TC else ()
    topology.ip("pod2", "link set eth0 arp off")
    try:
        topology.ip("node", "neigh flush dev pod2")
        ground.insist_on_failures(dict.fromkeys(PLACES, _REPORTED), LONG, unsure)
        ground.insist_that_others_go_on()
    finally:
        topology.ip("pod2", "link set eth0 arp on")
        topology.ip("node", "neigh flush dev pod2")
    ground.insist_that_all_is_well()


@pytest.mark.parametrize("family", Family)
def test_a_neighbour_that_is_not_known_yet(ground: Ground, family: Family) -> None:
    """Packets that wait for it are not lost, not even local UDP packets whose route has changed."""
    for place in PLACES:
        ground.topology.ip("node", "neigh flush dev pod2")
        asked = ground.ask(place, UDP, family, UDP.cluster_ip(family), UDP.port, 3, SHORT)
        assert (place, asked.failures) == (place, [])


def test_a_deleted_route(ground: Ground) -> None:
    """Packets leave by the default route, to somebody who does not forward."""
    ground.routes("del")
    ground.refresh()
    ground.insist_on_failures(dict.fromkeys(PLACES, _SILENT))
    ground.insist_that_others_go_on()
    ground.routes("add")
    ground.refresh()
    ground.insist_that_all_is_well()


def test_an_interface_goes_down_and_comes_up(ground: Ground) -> None:
    ground.down()
    ground.insist_on_failures(dict.fromkeys(PLACES, _SILENT))
    ground.insist_that_others_go_on()
    ground.up()
    ground.insist_that_all_is_well()


def down_and_up(ground: Ground, target: Target, ways: Mapping[Family, tuple[str, int]]) -> tuple[str, ...]:
    """Return what breaks of connections that are established meanwhile."""
    kept = [streams_to(ground.topology, target, f, *ways[f]) for f in Family]
    ground.down()
    ground.up()
    broken: list[str] = []
    for worker in kept:
        worker.ask(CountAnswers(rounds=2))
        ended: Kept = worker.ask(EndStreams())
        broken += ended.broken
    return tuple(broken)


def test_what_is_established_outlives_its_interface(ground: Ground) -> None:
    assert down_and_up(ground, LOCAL, {f: (NODE[f], LOCAL.node_port) for f in Family}) == ()


def test_what_is_masqueraded_there(ground: Ground) -> None:
    """Netfilter forgets what was masqueraded by an interface that goes down (masq_device_event).

    The tc program forgets a connection if a packet of it leaves by another device meanwhile.
    """
    broken = down_and_up(ground, TCP, {f: (TCP.cluster_ip(f), TCP.port) for f in Family})
    reasons = {b.rpartition(": ")[2] for b in broken}
    if ground.subject == TC:
        assert reasons <= {"Connection reset by peer"}
    else:
        assert reasons == {"Connection reset by peer"}


def test_a_pod_is_deleted_and_made_anew(ground: Ground) -> None:
    """Another device, under the same name, with the pod's addresses and routes."""
    topology = ground.topology
    topology.ip("node", "link delete pod2")
    ground.refresh()
    ground.insist_on_failures(dict.fromkeys(PLACES, _SILENT))
    ground.insist_that_others_go_on()
    topology.connect_pod("pod2")
    ground.refresh()
    ground.insist_that_all_is_well()


@pytest.mark.slow
def test_full_tables_forget_what_is_least_used(ground: Ground) -> None:
    """Others begin and are answered, and those go on that are used again before 128 others have begun.

    The kernel looks for what to forget in batches of up to that many (bpf_lru_list.c), among all that it has
    not seen used since the batch before. Each processor has batches of its own: those of two may follow each
    other at once, so all connections begin on one.

    Netfilter, when its table is full, drops what is new unless it finds something unanswered to drop
    (early_drop); how much it holds (nf_conntrack_max) is the whole machine's to say, and is left alone here.
    """
    if ground.subject != TC:
        pytest.skip("nf_conntrack_max is not a namespace's own")
    room, batch, batches = 512, 50, 14
    count = batch * batches
    with Topology(StayOnOneProcessor) as topology:
        topology.ask("node", LoadSmall(all_rules(), room))
        other = Ground(TC, topology)
        kept = [streams_to(topology, t, f, t.cluster_ip(f), t.port) for f in Family for t in (TCP, UDP)]
        for family, target in itertools.product(Family, (TCP, UDP)):
            other.worker("client", target, family).ask(StayOnOneProcessor())
            for _ in range(batches):
                asked = other.ask("client", target, family, target.cluster_ip(family), target.port, batch)
                assert (asked.failures, asked.pods.total()) == ([], batch)
                for worker in kept:
                    worker.ask(CountAnswers(rounds=1))
        figures = topology.ask("node", Figures())
        assert figures["conns"] <= 2 * room < 4 * count <= figures["entered"]
        for worker in kept:
            worker.ask(CountAnswers(rounds=2))
            ended: Kept = worker.ask(EndStreams())
            assert ended.broken == ()


def stepped(topology: Topology, family: Family, rules: Rules, check: Callable[[], None]) -> list[str]:
    """Look after each step of a loader, until it has attached to some of the devices; kill it there."""
    topology.ask("node", BeginLoad(family, rules))
    steps: list[str] = []
    while sum(step.startswith("egress") for step in steps) < 2:
        step = topology.ask("node", NextStep())
        assert step is not None, "it has ended"
        steps.append(step)
        check()
    topology.ask("node", KillLoad())
    return steps


def filters(topology: Topology) -> str:
    said = topology.ask("node", Tool(("tc", "qdisc", "show")))
    return "\n".join(line for line in said.out.splitlines() if "clsact" in line)


@pytest.mark.parametrize("family", [Family.IP, pytest.param(Family.IP6, marks=pytest.mark.slow)])
def test_a_loader_that_stands_still_or_is_killed_on_its_way(ground: Ground, family: Family) -> None:
    """The first load and a replacement: at each step packets pass, and none is half translated."""
    if ground.subject != TC:
        pytest.skip("nothing to compare with: iptables-restore exchanges a table in one step")
    rules = all_rules({TCP: FAULTY[TCP], UDP: FAULTY[UDP]})  # of the same shape as with all endpoints
    with Topology(StayOnOneProcessor) as topology:
        other = Ground(TC, topology)
        own = pod_address(family, "pod1")

        def untranslated() -> None:
            asked = other.ask("client", UDP, family, own, UDP.pod_port, SOME)
            assert (asked.failures, asked.pods) == ([], {"pod1": SOME})

        def translated() -> None:
            for target in (TCP, UDP):
                asked = other.ask("client", target, family, target.cluster_ip(family), target.port, SOME)
                assert (asked.failures, asked.pods, asked.sources) == (
                    [],
                    {"pod2": SOME},
                    {GATEWAY[family]: SOME},
                )

        steps = stepped(topology, family, rules, untranslated)
        assert "compiled" in steps
        untranslated()
        assert filters(topology) == ""
        topology.ask("node", BeginLoad(family, rules))
        while topology.ask("node", NextStep()) is not None:
            pass
        translated()
        kept = [streams_to(topology, t, family, t.cluster_ip(family), t.port) for t in (TCP, UDP)]
        steps = stepped(topology, family, another_shape(rules), translated)
        assert "filled" in steps
        translated()
        for worker in kept:
            worker.ask(CountAnswers(rounds=2))
            ended: Kept = worker.ask(EndStreams())
            assert ended.broken == ()
