"""The commands as an operator runs them, on a node with real clients and servers: nothing may fail or break.

TCP and UDP, IPv4 and IPv6, through cluster IPs and node ports, from outside, from a pod and from the node:
connections that stay open, and others that begin all the time while the rules are switched there and back.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from backends.replay.worker import Worker
from backends.testbed.command import run
from nfparity.snapshot import Variant
from tests.lab.examples import examples
from tests.lab.forkedcommand import run_nfparity
from tests.lab.kuberules import kube_proxy_rules
from tests.lab.traffic.clients import Connect, ConnectionResults
from tests.lab.traffic.host import Host, Request
from tests.lab.traffic.plan import (
    CLIENTS,
    EMPTY,
    LOCAL,
    NODE,
    PODS,
    STICKY,
    TCP,
    UDP,
    Target,
    cluster,
    pod_address,
)
from tests.lab.traffic.streams import BeginStreams, CountAnswers, EndStreams, Kept
from tests.lab.traffic.topology import Topology
from translate.ir import Family

ROOT = Path(__file__).resolve().parents[2]
SERVICES = {target.name for target in (TCP, UDP, STICKY, LOCAL, EMPTY)}
"""Those that are used here, and one of each other kind: a plan is tested with packets to each."""
STREAMS = 10
"""Connections that stay, of each kind."""
ROUND = examples(40)
"""Connections that begin, in a row, of each kind."""
FAMILIES = tuple(Family)[: examples(2)]
"""The families with rules and traffic."""
PAUSE = 1 / examples(2)
"""Seconds between two rounds: the commands need the processors, too."""
FIRST_NEW = 10_000
"""Sources of the connections that begin: far from those that stay."""


@dataclass(frozen=True)
class LoadRules(Request):
    """Puts kube-proxy's rules of both families in force."""

    variant: Variant

    def run(self, host: Host) -> None:
        for family in FAMILIES:
            whole = cluster(family)
            services = tuple(s for s in whole.services if s.name in SERVICES)
            text = kube_proxy_rules(replace(whole, services=services))
            program = "iptables" if family is Family.IP else "ip6tables"
            done = run((f"{program}-{self.variant}-restore",), text)
            assert not done.returncode, done.stderr


@dataclass(frozen=True)
class Nfparity(Request):
    """Runs the command on the node."""

    words: tuple[str, ...]

    def run(self, host: Host) -> tuple[int, str, str]:
        said = run_nfparity(self.words)
        return said.status, said.out, said.err


@dataclass(frozen=True)
class SavedRules(Request):
    """The output of iptables-save for both families, without counters and times."""

    variant: Variant

    def run(self, host: Host) -> tuple[str, ...]:
        said = []
        for program in ("iptables", "ip6tables"):
            text = run((f"{program}-{self.variant}-save",)).stdout
            lines = (line.partition(" [")[0] for line in text.splitlines() if line[:1] != "#")
            said.append("\n".join(lines))
        return tuple(said)


@pytest.fixture
def topology(variant: Variant) -> Iterator[Topology]:
    with Topology(LoadRules) as made:
        made.ask("node", LoadRules(variant))
        yield made
        nfparity(made, "rollback")


def nfparity(topology: Topology, *words: str) -> tuple[int, str, str]:
    state = () if words[0] == "plan" else ("--state", "/run/migrate")
    said: tuple[int, str, str] = topology.ask("node", Nfparity(("migrate", *words, *state)))
    return said


def kinds() -> Iterator[tuple[Family, Target, str, int]]:
    for family, target in itertools.product(FAMILIES, (TCP, UDP)):
        yield family, target, target.cluster_ip(family), target.port
        yield family, target, NODE[family], target.node_port


def sources(host: str, family: Family) -> tuple[str, ...]:
    return {"client": CLIENTS[family], "pod1": (pod_address(family, "pod1"),), "node": (NODE[family],)}[host]


def keep_open(topology: Topology, host: str) -> Worker:
    worker = topology.join(host)
    for number, (family, target, address, port) in enumerate(kinds()):
        worker.ask(
            BeginStreams(
                family=family,
                protocol=target.protocol,
                address=address,
                port=port,
                sources=sources(host, family),
                count=STREAMS,
                first=number * STREAMS,
            )
        )
    return worker


def keep_asking(worker: Worker, host: str, over: Event) -> ConnectionResults:
    """Begin connections until it is over."""
    total, first = ConnectionResults(), FIRST_NEW
    while not over.is_set():
        for family, target, address, port in kinds():
            job = Connect(
                family=family,
                protocol=target.protocol,
                address=address,
                port=port,
                sources=sources(host, family),
                count=ROUND,
                first=first,
                at_once=4,
            )
            first += ROUND
            total.add(worker.ask(job))
        over.wait(PAUSE)
    return total


@pytest.mark.parametrize(
    "variant", [pytest.param(Variant.LEGACY, marks=pytest.mark.slow), Variant.NFT], indirect=True
)
def test_there_and_back_under_traffic(
    topology: Topology, variant: Variant, capsys: pytest.CaptureFixture[str]
) -> None:
    before = topology.ask("node", SavedRules(variant))
    status, out, err = nfparity(topology, "plan", "-o", "/run/node.plan", "--format", "json")
    assert (status, err.count("differs")) == (0, 0), err
    planned: dict[str, Any] = json.loads(out)
    assert planned["parity"]
    assert set(planned["families"]) == {"ip", "ip6"}
    assert any(
        "--keep-table nat --keep-table filter: these tables stay" in line for line in planned["static"]
    )
    hosts = ("client", "pod1", "node")
    kept = {host: keep_open(topology, host) for host in hosts}
    busy = {host: topology.join(host) for host in hosts}
    over = Event()
    with ThreadPoolExecutor(len(hosts)) as pool:
        asking = {host: pool.submit(keep_asking, busy[host], host, over) for host in hosts}
        try:
            said = []
            for words in (("apply", "/run/node.plan"), ("verify", "--live", "--confirm"), ("rollback",)):
                said.append((words[0], nfparity(topology, *words)))
                for worker in kept.values():
                    worker.ask(CountAnswers(rounds=3))
                if words[0] == "apply":
                    saved = topology.ask("node", SavedRules(variant))
                    assert not any("-A" in text for text in saved)
        finally:
            over.set()
        asked = {host: future.result() for host, future in asking.items()}
    assert [(word, status) for word, (status, _, _) in said] == [("apply", 0), ("verify", 0), ("rollback", 0)]
    ended: dict[str, Kept] = {host: worker.ask(EndStreams()) for host, worker in kept.items()}
    with capsys.disabled():
        begun = sum(one.failed + sum(one.pods.values()) for one in asked.values())
        print(
            f"\n{variant}: {begun} connections begun, {sum(a.failed for a in asked.values())} failed, "
            f"{sum(a.resent for a in asked.values())} segments sent again; "
            f"{sum(e.connections for e in ended.values())} kept open, "
            f"{sum(len(e.broken) for e in ended.values())} broken, "
            f"{sum(e.answers for e in ended.values())} answers"
        )
    for one in asked.values():
        assert (one.failed, one.failures) == (0, [])
        assert set(one.pods) == set(PODS)
    for end in ended.values():
        assert end.broken == ()
        assert end.connections == 4 * len(FAMILIES) * STREAMS
    assert topology.ask("node", SavedRules(variant)) == before
