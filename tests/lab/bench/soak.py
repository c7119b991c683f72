"""Real traffic for minutes, while the rules change and the tc program is replaced.

Connections begin and end all the time, from outside, from a pod and from the node, over both families; others
stay from the beginning to the end. Every few seconds the endpoints of the services change, and from time to
time rules of another shape replace the program. Nothing may fail.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from backends.replay.worker import Worker
from tests.lab.bench.machine import load_average, machine
from tests.lab.bench.node import kernel_memory
from tests.lab.bench.soakpage import Sample, Soaked, write_soak
from tests.lab.traffic.clients import FIRST_PORT, LAST_PORT, Connect, ConnectionResults
from tests.lab.traffic.plan import (
    CLIENTS,
    NODE,
    PODS,
    TCP,
    UDP,
    Target,
    all_rules,
    another_shape,
    pod_address,
)
from tests.lab.traffic.streams import BeginStreams, EndStreams, Kept
from tests.lab.traffic.subjects import SUBJECTS, Apply, Figures, Load, Replace
from tests.lab.traffic.topology import Topology
from translate.errors import MachineError, NfparityError
from translate.ir import Family

_PLACES: Final = ("client", "pod1", "node")
_STREAMS: Final = 10
"""The number of permanent connections for each place, family, protocol and entrance."""
_ROUND: Final = 200
_PORTS: Final = LAST_PORT - FIRST_PORT - 1000
"""The number of source ports used in turn; higher ports are for permanent connections."""
_ENDPOINTS: Final = (PODS, PODS[:2], PODS[1:], PODS[:1], PODS)

_EXAMPLE = """\
example:
  python -m tests.lab.bench.soak --minutes 10
"""

_HERE = Path("tests/lab/bench")


def main(arguments: list[str] | None = None) -> int:
    """Run the soak; return 1 if anything has failed, 3 if it cannot run here."""
    options = _parser().parse_args(arguments)
    try:
        if os.geteuid():
            raise MachineError("needs root, for network namespaces")
        soaked = _Soak(
            options.subject, options.minutes * 60, options.change, options.replace, options.pause
        ).run()
        write_soak(soaked, options.output)
    except NfparityError as e:
        print(f"soak: {e}", file=sys.stderr)
        return 3
    _say(f"written to {options.output / 'SOAK.md'}")
    return 1 if soaked.failed else 0


@dataclass(slots=True)
class _Soak:
    subject: str
    seconds: float
    change_seconds: float
    replace_seconds: float
    pause: float
    soaked: Soaked = field(default_factory=lambda: Soaked(machine=machine()))
    _over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> Soaked:
        soaked = self.soaked
        soaked.options = {"subject": self.subject, "load average at the beginning": load_average()}
        with Topology() as topology, ThreadPoolExecutor(len(_PLACES) * 2) as pool:
            memory = kernel_memory()
            topology.ask("node", Load(self.subject, all_rules()))
            soaked.loaded_memory = kernel_memory() - memory
            kept = [self._kept(topology, place) for place in _PLACES]
            churning = [
                pool.submit(self._churn, topology.join(place), place, target)
                for place, target in itertools.product(_PLACES, (TCP, UDP))
            ]
            try:
                self._steer(topology, churning)
            finally:
                self._over.set()
            for change in churning:
                change.result()
            for worker in kept:
                ended: Kept = worker.ask(EndStreams())
                soaked.kept += ended.connections
                soaked.kept_answers += ended.answers
                soaked.broken += ended.broken
        soaked.options["load average at the end"] = load_average()
        return soaked

    def _kept(self, topology: Topology, place: str) -> Worker:
        worker = topology.join(place)
        for family, target in itertools.product(Family, (TCP, UDP)):
            for number, (address, port) in enumerate(_targets(family, target)):
                worker.ask(
                    BeginStreams(
                        family=family,
                        protocol=target.protocol,
                        address=address,
                        port=port,
                        sources=_sources(place, family),
                        count=_STREAMS,
                        # These ports come after those of the short connections.
                        first=-_STREAMS * (1 + number) * len(_sources(place, family)),
                        pause=0.2,
                    )
                )
        return worker

    def _churn(self, worker: Worker, place: str, target: Target) -> None:
        """Run rounds of connections through every entrance in turn, until the time is over."""
        targets = itertools.cycle((f, place) for f in Family for place in _targets(f, target))
        for number in itertools.count():
            if self._over.is_set():
                return
            family, (address, port) = next(targets)
            sources = _sources(place, family)
            answers: ConnectionResults = worker.ask(
                Connect(
                    family=family,
                    protocol=target.protocol,
                    address=address,
                    port=port,
                    sources=sources,
                    count=_ROUND,
                    first=number * _ROUND % (len(sources) * _PORTS),
                    at_once=16,
                )
            )
            with self._lock:
                self.soaked.add(place, target.protocol, family, answers)
            self._over.wait(self.pause)

    def _steer(self, topology: Topology, churning: list[Future[None]]) -> None:
        """Change and replace rules and take samples, until the time is over or a client has failed."""
        soaked, began = self.soaked, time.monotonic()
        another, changed, replaced = False, began, began
        endpoints = itertools.cycle(_ENDPOINTS)
        pods = next(endpoints)
        soaked.samples.append(self._sample(topology, 0.0))
        while (now := time.monotonic()) < began + self.seconds and not any(c.done() for c in churning):
            if now >= replaced + self.replace_seconds:
                another = not another
                topology.ask("node", Replace(_rules(pods, another=another)))
                replaced = time.monotonic()
                soaked.replaced.append(replaced - now)
            elif now >= changed + self.change_seconds:
                pods, changed = next(endpoints), now
                topology.ask("node", Apply(_rules(pods, another=another)))
                soaked.changed.append(time.monotonic() - now)
            if now >= began + soaked.samples[-1].at + self.seconds / 20:
                soaked.samples.append(self._sample(topology, now - began))
                _say(f"{now - began:.0f} s: {soaked.summary()}")
            time.sleep(0.1)
        soaked.seconds = time.monotonic() - began
        soaked.samples.append(self._sample(topology, soaked.seconds))

    def _sample(self, topology: Topology, at: float) -> Sample:
        figures = topology.ask("node", Figures())
        return Sample(
            at=at,
            connections=self.soaked.connections,
            figures=figures,
            memory=kernel_memory(),
            resident=_resident(topology.hosts["node"].pid),
        )


def _targets(family: Family, target: Target) -> Iterator[tuple[str, int]]:
    yield target.cluster_ip(family), target.port
    yield NODE[family], target.node_port


def _sources(place: str, family: Family) -> tuple[str, ...]:
    if place == "client":
        return CLIENTS[family]
    return (NODE[family] if place == "node" else pod_address(family, place),)


def _rules(pods: tuple[str, ...], *, another: bool) -> dict[Family, str]:
    rules = all_rules({TCP: pods, UDP: pods})
    return another_shape(rules) if another else rules


def _resident(pid: int) -> int:
    """Return the memory of a process in KiB."""
    lines = (line.partition(":") for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return next(int(value.split()[0]) for name, _, value in lines if name == "VmRSS")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.lab.bench.soak",
        description=__doc__,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=10, metavar="M", help="default: 10")
    parser.add_argument("--subject", choices=SUBJECTS, default="tc-ebpf", help="default: tc-ebpf")
    for name, default, what in (
        ("--change", 3.0, "two changes of endpoints"),
        ("--replace", 30.0, "two replacements"),
        ("--pause", 1.0, "two rounds of a client"),
    ):
        text = f"seconds between {what}; default: {default:g}"
        parser.add_argument(name, type=float, default=default, metavar="S", help=text)
    parser.add_argument("--output", type=Path, default=_HERE, metavar="DIR", help=f"default: {_HERE}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
