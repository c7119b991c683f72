"""Throughput of this project's own parts: the reader, the simulator, and the replay through a kernel."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from backends.model.contract import Job
from backends.model.flow import Flow, Send
from backends.model.packet import Packet
from backends.nftables.backend import NftablesBackend
from backends.simulator import Simulation
from tests.lab.bench.aside import made_before_set_aside
from tests.lab.bench.subjects import Material
from translate.ir import Protocol
from translate.passes import LEVELS
from translate.read import read_ruleset

__all__ = ["speeds"]

_REPLAYED: Final = 5000
_SAMPLED: Final = 16_384
"""Flows, or connections, between two looks at the time."""


def speeds(material: Material, seconds: float) -> dict[str, float]:
    """Return, per second of about ``seconds`` each: lines read, flows simulated, replayed and sampled.

    Every flow is the first packet to one of the services, in turn; sampled are new connections to one of
    them, of which only the destination is read. What is counted of the reader is elapsed time; of all
    else, CPU time, of the kernel's part and of both processes where there are two. The simulator prepares
    the rules of a service when it first meets them, so its first flows to services are counted apart from
    further ones to the same services.

    Nothing is charged with what was made before it (:mod:`tests.lab.bench.aside`), a replay not even with the
    ruleset.
    """
    with made_before_set_aside():
        began = time.perf_counter()
        ruleset = read_ruleset(material.text.encode(), name="rules")
        rates = {"reader, lines": material.text.count("\n") / (time.perf_counter() - began)}
        job = Job(rules=ruleset, node=material.cluster.node, level=max(LEVELS))
        rates |= _simulated(job, material, seconds)
    with NftablesBackend().open(job) as session, made_before_set_aside():
        flows = list(itertools.islice(_flows(material), _REPLAYED))
        for _ in session.replay(flows[: _REPLAYED // 10]):
            pass
        began, done = _spent(session.pid), 0
        while (spent := _spent(session.pid) - began) < seconds:
            done += sum(1 for _ in session.replay(flows))
        rates["replay through nftables, flows"] = done / spent
        first = flows[0].first
        assert first.entry is not None
        began, done = _spent(session.pid), 0
        while (spent := _spent(session.pid) - began) < seconds:
            done += sum(session.sample(first.packet, first.entry, _SAMPLED).values())
        rates["sampling through nftables, connections"] = done / spent
    return rates


def _spent(pid: int) -> float:
    """The CPU seconds of this process and of another, the kernel's on their behalf included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _simulated(job: Job, material: Material, seconds: float) -> dict[str, float]:
    simulation = Simulation(job)
    flows: list[Flow] = []
    coming = _flows(material)
    simulation.simulate(next(coming))
    spent = 0.0
    while spent < seconds and len(flows) < len(material.cluster.services):
        flow = next(coming)
        began = time.process_time()
        simulation.simulate(flow)
        spent += time.process_time() - began
        flows.append(flow)
    rates = {"simulator, first flows of services": len(flows) / spent}
    began, done, ways = time.process_time(), 0, 0
    for flow in itertools.cycle(flows):
        ways += len(simulation.simulate(flow).branches)
        done += 1
        if (spent := time.process_time() - began) >= seconds:
            break
    return rates | {"simulator, flows": done / spent, "simulator, ways of flows": ways / spent}


def _flows(material: Material) -> Iterator[Flow]:
    """First packets from one pod, service by service, each from a port that no other has for long."""
    cluster = material.cluster
    services = [s for s in cluster.services if s.protocol == "udp"]
    for n in itertools.count():
        service = services[n % len(services)]
        packet = Packet(
            family=cluster.family,
            src=cluster.pods.low + 100,
            dst=service.cluster_ip,
            proto=Protocol.UDP,
            sport=1024 + n % 64_000,
            dport=service.port,
        )
        yield Flow(id=str(n), steps=(Send(packet=packet, entry="cni0"),))
