"""Real clients and servers, through kube-proxy's rules as each subject has them in force: nothing may fail.

iptables-legacy is the control: what fails there is the fault of the traffic.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from threading import Event, Lock

import pytest

from backends.iptables.backend import IptablesBackend
from backends.model.contract import Availability
from backends.nftables.backend import NftablesBackend
from backends.replay.worker import Worker
from backends.tc_ebpf import TcEbpfBackend
from backends.testbed.command import find_tool
from harness.diff.shares import FALSE_ALARM_RATE, Tally, unfair_shares
from tests.lab.kuberules import Protocol
from tests.lab.traffic.clients import Connect, ConnectionResults
from tests.lab.traffic.host import Request
from tests.lab.traffic.plan import (
    CLIENTS,
    DNS,
    EMPTY,
    GATEWAY,
    HTTP,
    LOCAL,
    NODE,
    PODS,
    STICKY,
    TCP,
    UDP,
    Target,
    all_rules,
    another_shape,
    pod_address,
)
from tests.lab.traffic.programs import Curl, Dig, Fetch
from tests.lab.traffic.servers import BYTES, ServeNames
from tests.lab.traffic.streams import BeginStreams, CountAnswers, EndStreams, Kept
from tests.lab.traffic.subjects import Apply, Load, Replace, Rules
from tests.lab.traffic.topology import Topology
from translate.ir import Family

Ways = tuple[tuple[str, int], ...]
"""Addresses and ports by which one reaches a service."""

MANY = [400, pytest.param(10_000, marks=pytest.mark.slow)]
"""Connections of either protocol, family and way in."""

SOME = 100


class Numbers:
    """The first source port of the next round, so that rounds share no ports soon."""

    def __init__(self) -> None:
        self._next = 0
        self._lock = Lock()

    def take(self, count: int) -> int:
        with self._lock:
            taken = self._next
            self._next += count
        return taken


_NUMBERS = Numbers()

_VARIANTS = [
    ("iptables-legacy", "offloaded"),
    ("nftables", "offloaded"),
    ("tc-ebpf", "offloaded"),
    pytest.param(("tc-ebpf", "software"), marks=pytest.mark.slow),
]


def availability(subject: str) -> Availability:
    if subject == "nftables":
        return NftablesBackend().probe()
    return TcEbpfBackend().probe() if subject == "tc-ebpf" else IptablesBackend(subject).probe()


@pytest.fixture(scope="module", params=_VARIANTS, ids="-".join)
def loaded(request: pytest.FixtureRequest) -> Iterator[Topology]:
    subject, checksums = request.param
    found = availability(subject)
    if not found.ok:
        pytest.skip(f"{subject}: {found.reason}")
    with Topology(checksums=checksums) as topology:
        topology.ask("node", Load(subject, all_rules()))
        yield topology


def ask(
    worker: Worker, family: Family, target: Target, address: str, port: int, **more: object
) -> ConnectionResults:
    count = int(more.pop("count", SOME))  # type: ignore[call-overload]
    sources = more.pop("sources", CLIENTS[family])
    job = Connect(
        family=family,
        protocol=target.protocol,
        address=address,
        port=port,
        sources=sources,  # type: ignore[arg-type]
        count=count,
        first=_NUMBERS.take(count),
        **more,  # type: ignore[arg-type]
    )
    asked: ConnectionResults = worker.ask(job)
    return asked


def insist(asked: ConnectionResults, count: int = SOME) -> None:
    assert asked.failures == []
    assert (asked.failed, sum(asked.pods.values())) == (0, count)


def insist_fair(asked: ConnectionResults) -> None:
    counts = tuple(asked.pods[pod] for pod in PODS)
    tally = Tally(flow_id="pods", what="pod", probabilities=(Fraction(1, 3),) * 3, counts=counts)
    assert unfair_shares([tally], false_alarm_rate=FALSE_ALARM_RATE) == ()


@pytest.mark.parametrize("count", MANY)
@pytest.mark.parametrize("family", Family)
def test_many_connections_from_outside(loaded: Topology, family: Family, count: int) -> None:
    """TCP and UDP at the same time, from two processes."""
    workers = {TCP: loaded.join("client"), UDP: loaded.join("client")}

    def both_ways(target: Target) -> list[ConnectionResults]:
        ways = ((target.cluster_ip(family), target.port), (NODE[family], target.node_port))
        return [ask(workers[target], family, target, *way, count=count) for way in ways]

    with ThreadPoolExecutor(2) as pool:
        rounds = [asked for both in pool.map(both_ways, workers) for asked in both]
    assert len(rounds) == 4
    for asked in rounds:
        insist(asked, count)
        insist_fair(asked)
        assert asked.sources == {GATEWAY[family]: count}


@pytest.mark.parametrize("target", [TCP, UDP], ids=["tcp", "udp"])
@pytest.mark.parametrize("family", Family)
def test_from_a_pod(loaded: Topology, family: Family, target: Target) -> None:
    worker, own = loaded.join("pod1"), pod_address(family, "pod1")
    by_ip = ask(worker, family, target, target.cluster_ip(family), target.port, sources=(own,))
    insist(by_ip)
    insist_fair(by_ip)
    # A pod sees another pod as it is, and itself by way of the node.
    hairpins = by_ip.pods["pod1"]
    assert by_ip.sources == Counter({GATEWAY[family]: hairpins, own: SOME - hairpins})
    by_port = ask(worker, family, target, NODE[family], target.node_port, sources=(own,))
    insist(by_port)
    assert by_port.sources == {GATEWAY[family]: SOME}


@pytest.mark.parametrize("target", [TCP, UDP], ids=["tcp", "udp"])
@pytest.mark.parametrize("family", Family)
def test_from_the_node(loaded: Topology, family: Family, target: Target) -> None:
    worker, own = loaded.join("node"), NODE[family]
    ways = [(target.cluster_ip(family), target.port, own), (own, target.node_port, own)]
    if family is Family.IP:
        ways.append(("127.0.0.1", target.node_port, "127.0.0.1"))
    for address, port, source in ways:
        asked = ask(worker, family, target, address, port, sources=(source,))
        insist(asked)
        insist_fair(asked)
        assert asked.sources == {GATEWAY[family]: SOME}


@pytest.mark.parametrize("family", Family)
def test_a_pod_beside_the_services(loaded: Topology, family: Family) -> None:
    """Packets without any translation, between pods, and from outside."""
    own, other = (pod_address(family, pod) for pod in ("pod1", "pod2"))
    for host, sources in (("pod1", (own,)), ("client", CLIENTS[family])):
        asked = ask(loaded.join(host), family, UDP, other, UDP.pod_port, sources=sources)
        insist(asked)
        assert asked.pods == {"pod2": SOME}
        assert set(asked.sources) == set(sources)


@pytest.mark.parametrize("family", Family)
def test_the_external_traffic_policy_local(loaded: Topology, family: Family) -> None:
    asked = ask(loaded.join("client"), family, LOCAL, NODE[family], LOCAL.node_port)
    insist(asked)
    insist_fair(asked)
    assert set(asked.sources) == set(CLIENTS[family])


@pytest.mark.parametrize("family", Family)
def test_session_affinity(loaded: Topology, family: Family) -> None:
    worker = loaded.join("client")
    for source in CLIENTS[family][:4]:
        asked = ask(
            worker,
            family,
            STICKY,
            STICKY.cluster_ip(family),
            STICKY.port,
            sources=(source,),
            count=30,
            at_once=1,
        )
        insist(asked, 30)
        assert len(asked.pods) == 1


@pytest.mark.parametrize("family", Family)
def test_a_service_without_endpoints_refuses(loaded: Topology, family: Family) -> None:
    """All ways at once: where an error meets a busy socket, the next one comes a second later."""
    hosts = {"client": CLIENTS[family][0], "pod1": pod_address(family, "pod1")}
    ways = ((EMPTY.cluster_ip(family), EMPTY.port), (NODE[family], EMPTY.node_port))
    asking = [(loaded.join(host), source, *way) for host, source in hosts.items() for way in ways]

    def connect(worker: Worker, source: str, address: str, port: int) -> ConnectionResults:
        return ask(worker, family, EMPTY, address, port, sources=(source,), count=3)

    with ThreadPoolExecutor(len(asking)) as pool:
        for asked in [one.result() for one in [pool.submit(connect, *each) for each in asking]]:
            assert asked.failed == 3
            assert {f.rpartition(": ")[2] for f in asked.failures} == {"Connection refused"}


def bracketed(family: Family, address: str) -> str:
    return address if family is Family.IP else f"[{address}]"


@pytest.mark.skipif(find_tool("curl") is None, reason="needs curl (Debian package curl)")
@pytest.mark.parametrize("family", Family)
def test_curl_gets_pages(loaded: Topology, family: Family) -> None:
    for address, port in ((HTTP.cluster_ip(family), HTTP.port), (NODE[family], HTTP.node_port)):
        url = f"http://{bracketed(family, address)}:{port}"
        said = loaded.ask("client", Curl(url, SOME))
        assert (said.status, said.error) == (0, "")
        assert said.sources == {GATEWAY[family]: SOME}
        assert set(said.pods) == set(PODS)
        # Large segments, which stay whole from one end of a veth pair to the other.
        size = 10_000_000
        assert loaded.ask("client", Fetch(f"{url}{BYTES}{size}")) == (size, 0)


@pytest.mark.skipif(find_tool("dig") is None, reason="needs dig (Debian package bind9-dnsutils)")
@pytest.mark.skipif(find_tool("dnsmasq") is None, reason="needs dnsmasq (Debian package dnsmasq-base)")
def test_dig_asks_for_names(loaded: Topology) -> None:
    for pod in PODS:
        loaded.ask(pod, ServeNames())
    for family in Family:
        ways = [("client", DNS.cluster_ip(family), DNS.port), ("pod1", DNS.cluster_ip(family), DNS.port)]
        ways += [("client", NODE[family], DNS.node_port), ("node", DNS.cluster_ip(family), DNS.port)]
        for host, server, port in ways:
            said = loaded.ask(host, Dig(family, server, SOME, port))
            assert (said.status, said.error) == (0, "")
            assert sum(said.pods.values()) == SOME
            assert set(said.pods) == set(PODS)
    assert DNS.protocol is Protocol.UDP


def begin_streams(
    worker: Worker, family: Family, source: tuple[str, ...], ways: Mapping[Target, Ways]
) -> None:
    for target, found in ways.items():
        for address, port in found:
            worker.ask(
                BeginStreams(
                    family=family,
                    protocol=target.protocol,
                    address=address,
                    port=port,
                    sources=source,
                    count=10,
                    first=_NUMBERS.take(10),
                )
            )


def everywhere(topology: Topology) -> list[Worker]:
    """Connections that stay, of all kinds: from outside, from a pod, also to itself, and from the node."""
    workers = []
    for host in ("client", "pod1", "node"):
        worker = topology.join(host)
        for family in Family:
            sources = {
                "client": CLIENTS[family],
                "pod1": (pod_address(family, "pod1"),),
                "node": (NODE[family],),
            }
            ways = {t: ((t.cluster_ip(family), t.port), (NODE[family], t.node_port)) for t in (TCP, UDP)}
            begin_streams(worker, family, sources[host], ways)
        workers.append(worker)
    return workers


def test_established_connections_survive_changes_and_replacements(loaded: Topology) -> None:
    """Endpoints go and come, and the program is replaced, while connections stay and others begin."""
    kept, busy, after = everywhere(loaded), loaded.join("client"), loaded.join("client")
    background: list[ConnectionResults] = []
    over = Event()

    def churn() -> None:
        while not over.is_set():
            for family in Family:
                for target in (TCP, UDP):
                    background.append(ask(busy, family, target, target.cluster_ip(family), target.port))
            over.wait(0.5)  # a compiler is at work besides

    steps: list[tuple[Callable[[Rules], Request], tuple[str, ...], bool]] = [
        (Apply, ("pod1", "pod2"), False),
        (Apply, ("pod2", "pod3"), False),
        (Replace, ("pod2", "pod3"), True),
        (Apply, ("pod1",), True),
        (Apply, PODS, True),
    ]
    with ThreadPoolExecutor(1) as pool:
        churning = pool.submit(churn)
        try:
            for request, pods, another in steps:
                rules = all_rules({TCP: pods, UDP: pods})
                loaded.ask("node", request(another_shape(rules) if another else rules))
                for family, target in itertools.product(Family, (TCP, UDP)):
                    asked = ask(after, family, target, target.cluster_ip(family), target.port)
                    insist(asked)
                    assert set(asked.pods) == set(pods)
                for worker in kept:
                    looked: Kept = worker.ask(CountAnswers(rounds=2))
                    assert looked.broken == ()
        finally:
            over.set()
        churning.result()
    for asked in background:
        insist(asked)
    for worker in kept:
        ended: Kept = worker.ask(EndStreams())
        assert ended.broken == ()
        assert ended.answers > 2 * len(steps) * ended.connections
