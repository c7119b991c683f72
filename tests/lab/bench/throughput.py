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
from tests.lab.bench.subjects import Material
from translate.collector import present_objects_kept
from translate.condense import read_large
from translate.ir import Protocol
from translate.passes import LEVELS
from translate.read import read_ruleset

__all__ = ["speeds"]

_REPLAYED: Final = 5000
_SAMPLED: Final = 16_384
"""The number of flows or connections between two reads of the clock."""


def speeds(material: Material, seconds: float) -> dict[str, float]:
    """Return the rates of reader, simulator, replay and sampling, each measured for about ``seconds``.

    A flow is the first packet to a service, and flows visit the services in turn. Sampling opens connections
    to one service, and reads only their destinations. The reader's rate is per second of elapsed time. The
    others are per second of CPU time, which includes the kernel and both processes of a replay. The simulator
    prepares the rules of a service at its first flow, so first flows have a rate of their own.

    Garbage collection ignores objects made before a measurement (``present_objects_kept``).
    """
    with present_objects_kept():
        text, lines = material.text.encode(), material.text.count("\n")
        began = time.perf_counter()
        read_large(text, name="rules")
        rates = {"reader of translations, lines": lines / (time.perf_counter() - began)}
        began = time.perf_counter()
        ruleset = read_ruleset(text, name="rules")
        rates["reader of every rule, lines"] = lines / (time.perf_counter() - began)
        job = Job(rules=ruleset, node=material.cluster.node, level=max(LEVELS))
        rates |= _simulated(job, material, seconds)
    with NftablesBackend().open(job) as session, present_objects_kept():
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
    """Return the CPU seconds of this process and of process ``pid``, including system time."""
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
    began, done, branches = time.process_time(), 0, 0
    for flow in itertools.cycle(flows):
        branches += len(simulation.simulate(flow).branches)
        done += 1
        if (spent := time.process_time() - began) >= seconds:
            break
    return rates | {"simulator, flows": done / spent, "simulator, branches of flows": branches / spent}


def _flows(material: Material) -> Iterator[Flow]:
    """Yield the first packets of one pod to each service in turn, from changing ports."""
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
