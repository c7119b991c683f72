"""How fast this project's own parts run: the reader, the simulator, and the replay through a kernel."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

from backends.contract import Job
from backends.flow import Flow, Send
from backends.kernel.nftables import NftablesBackend
from backends.packet import Packet
from backends.simulator import Simulation
from bench.subjects import Material
from translate.ir import Protocol
from translate.passes import LEVELS
from translate.read import read_ruleset

__all__ = ["speeds"]


def speeds(material: Material, seconds: float) -> dict[str, float]:
    """Return, per second of about ``seconds`` each: lines read, flows simulated, flows replayed.

    Every flow is the first packet to one of the services, in turn. What is counted of the simulator is its
    CPU time, after the first flow, which prepares the rules.
    """
    began = time.perf_counter()
    ruleset = read_ruleset(material.text.encode(), name="rules")
    found = {"reader, lines": material.text.count("\n") / (time.perf_counter() - began)}
    job = Job(ruleset=ruleset, node=material.cluster.node, level=max(LEVELS))
    found |= _simulated(job, material, seconds)
    with NftablesBackend().open(job) as session:
        began, done = time.perf_counter(), 0
        for _ in session.replay(_flows(material)):
            done += 1
            if (spent := time.perf_counter() - began) > 2 * seconds:
                break
        found["replay through nftables, flows"] = done / spent
    return found


def _simulated(job: Job, material: Material, seconds: float) -> dict[str, float]:
    simulation = Simulation(job)
    flows = _flows(material)
    simulation.simulate(next(flows))
    began, done, ways = time.process_time(), 0, 0
    while (spent := time.process_time() - began) < seconds:
        ways += len(simulation.simulate(next(flows)).branches)
        done += 1
    return {"simulator, flows": done / spent, "simulator, ways of flows": ways / spent}


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
