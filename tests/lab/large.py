"""Parity for a large cluster: flows to every service from each place, on every backend that can load it.

``python -m tests.lab.large --services N`` draws a cluster of N services with everything that a Service can
have (:mod:`tests.lab.kuberules`), in each family, and replays flows that use each of them
(:func:`tests.lab.kuberules.service_uses`). It prints the elapsed time and the CPU time of each part; the
elapsed time also depends on other load of the machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

from backends.model.contract import Availability, Backend, Job, Session
from backends.model.flow import Flow, Repeated
from backends.model.outcome import FlowResult
from harness.diff.backends import BACKENDS, REFERENCE, backend, parse_backends
from harness.diff.batch import Batch
from harness.diff.deciding_rules import deciding_rules
from harness.diff.parity import Plan, choose_backends, run_parity
from harness.diff.result import ParityReport
from harness.report.text import print_parity
from harness.status import worst_status
from tests.lab.errors import print_error
from tests.lab.kuberules import Cluster, Shape, draw_cluster, kube_proxy_rules, service_uses
from translate.errors import InputError, MachineError, Note
from translate.ir import Family
from translate.read import read_ruleset

__all__ = ["CARRIERS", "Expected", "Subject", "large_shape", "large_subject", "run_one"]

CARRIERS: Final = (
    ("iptables-legacy", 0),
    ("iptables-nft", 0),
    ("nftables", 0),
    ("nftables", 1),
    ("nftables", 2),
    ("tc-ebpf", 2),
)
"""Backends at a level that carry the packets. iptables takes the rules unchanged at any level.

Below -O2 the tc program has code for each service, and compiling that takes minutes at this size.
"""


def large_shape(services: int, family: Family) -> Shape:
    """Return a cluster of ``services`` with every feature of a Service, in the usual proportions.

    Only a few services have affinity, because its lists are emptied one by one between any two flows.
    """
    exposed = min(services // 10, 1200)
    balancers = exposed // 3
    return Shape(
        family=family,
        services=services,
        endpoints=3,
        node_ports=exposed - balancers,
        load_balancers=balancers,
        external_ips=services // 50,
        source_ranges=balancers // 2,
        external_local=exposed // 4,
        internal_local=services // 50,
        affinity=min(services // 20, 4),
        without_endpoints=services // 40,
        udp=services // 10,
        sctp=services // 20,
        masquerade_agent=True,
    )


@dataclass(frozen=True, slots=True)
class Subject:
    """A cluster's rules and the flows that use its services."""

    cluster: Cluster
    lines: int
    batch: Batch


def large_subject(shape: Shape) -> Subject:
    """Draw the cluster, write and read its rules, and make the flows."""
    cluster = draw_cluster(shape)
    text = kube_proxy_rules(cluster)
    name = f"{shape.services}-services-{shape.family.value}"
    ruleset = read_ruleset(text.encode(), name=name, family=shape.family)
    flows = tuple(service_uses(cluster))
    batch = Batch(rules_path=name, rules=ruleset, node=cluster.node, flows=flows, corpus=None)
    return Subject(cluster, text.count("\n"), batch)


@dataclass(frozen=True, slots=True)
class Expected:
    """The reference as a backend that simulates each flow once and returns the stored result."""

    results: dict[str, FlowResult]
    name: str = REFERENCE

    @classmethod
    def ask(cls, batch: Batch) -> Expected:
        """Return the backend with the simulated results of ``batch``."""
        with backend(REFERENCE).open(Job(rules=batch.ruleset, node=batch.node)) as session:
            return cls({r.flow_id: r for r in session.replay(batch.flows)})

    def probe(self) -> Availability:
        """Return that it is available."""
        return Availability(ok=True)

    def open(self, job: Job) -> AbstractContextManager[Session]:
        """Return a session of the stored results."""
        return nullcontext(_StoredSession(self.results))


class _StoredSession:
    limits: tuple[Note, ...] = ()

    def __init__(self, results: dict[str, FlowResult]) -> None:
        self._results = results

    def replay(self, flows: Iterable[Flow | Repeated]) -> Iterator[FlowResult]:
        """Return the stored results."""
        return (self._results[f.flow.id if isinstance(f, Repeated) else f.id] for f in flows)


def run_one(subject: Subject, expected: Expected, carrier: Backend, level: int) -> ParityReport:
    """Replay all flows through one backend at one level."""
    return run_parity(
        Plan(batches=(subject.batch,), level=level, miss=1.0),
        (carrier,),
        reference=expected,
        rules=deciding_rules,
        progress=lambda *_: None,
    )


class _Clock:
    """Prints each step with its duration and CPU time, including child processes that have ended."""

    def __init__(self) -> None:
        self._last = time.monotonic(), _worked()

    def tell(self, what: str) -> None:
        now = time.monotonic(), _worked()
        passed, worked = now[0] - self._last[0], now[1] - self._last[1]
        print(f"  {passed:7.1f} s ({worked:.1f} s of work)  {what}", flush=True)
        self._last = now


def _worked() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> int:
    """Print a line for each part, and the differences; return the worst exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.large", description=__doc__)
    parser.add_argument("--services", type=int, metavar="N", default=10000, help="default: %(default)s")
    parser.add_argument("--families", metavar="A,B", default="ip,ip6", help="default: %(default)s")
    parser.add_argument("--backends", metavar="A,B", default=",".join(BACKENDS), help="default: all")
    parser.add_argument("--levels", metavar="N,N", default="0,1,2", help="default: %(default)s")
    options = parser.parse_args()
    try:
        levels = [int(level) for level in options.levels.split(",")]
        families = [Family(name) for name in options.families.split(",")]
    except ValueError as e:
        parser.error(str(e))
    try:
        able, skipped = choose_backends(parse_backends(options.backends), requested=False)
        for backend in skipped:
            print(f"{backend.name} is skipped: {backend.skipped}")
        return max(_family(large_shape(options.services, family), able, levels) for family in families)
    except (InputError, MachineError) as e:
        return print_error(e)


def _family(shape: Shape, able: Sequence[Backend], levels: Sequence[int]) -> int:
    clock = _Clock()
    print(f"{shape.services} services, {shape.family.value}:", flush=True)
    subject = large_subject(shape)
    clock.tell(f"{subject.lines} lines of rules written and read, {len(subject.batch.flows)} flows made")
    expected = Expected.ask(subject.batch)
    clock.tell(REFERENCE)
    worst = 0
    for name, level in CARRIERS:
        carrier = next((b for b in able if b.name == name), None)
        if carrier is None or (level not in levels and not name.startswith("iptables-")):
            continue
        report = run_one(subject, expected, carrier, level)
        (compared,) = report.backends
        summary = f"{compared.differing} of {compared.flows} flows different"
        clock.tell(
            f"{name} -O{level}: {f'not tested: {compared.untested[0]}' if compared.untested else summary}"
        )
        if not report.parity:
            print_parity(report, sys.stdout)
            worst = worst_status((worst, report.status))
    return worst


if __name__ == "__main__":
    sys.exit(main())
