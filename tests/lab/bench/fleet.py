"""Assess a thousand snapshots in dask workers, kill one worker meanwhile, and print the cost.

The snapshots are those of the nodes of a drawn cluster (:mod:`tests.lab.kuberules.pernode`); each hundredth
is cut short. Exit status 1 when an answer is missing, or when another snapshot than these could not be
assessed.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from harness.report.progress import progress
from nfparity.assess.fleet.daskpool import dask_pool
from nfparity.assess.fleet.gathering import gather_answers
from nfparity.assess.fleet.grouping import Fleet, fleet_of
from nfparity.assess.fleet.node import Answer
from nfparity.assess.snapshots import AssessOptions
from nfparity.report.fleet import print_fleet
from tests.lab.bench.machine import load_average
from tests.lab.kuberules import Shape, draw_cluster
from tests.lab.kuberules.pernode import write_fleet
from translate.errors import NfparityError

__all__ = ["Killer", "children", "cut_some", "main", "replaying_worker", "shape_of"]

_CUT_EVERY: Final = 100
_CUT_TO: Final = 200


def shape_of(services: int) -> Shape:
    """Return a cluster with every kind of service that a finding can concern."""
    tenth = max(services // 10, 1)
    return Shape(
        services=services,
        endpoints=3,
        node_ports=2 * tenth,
        load_balancers=tenth,
        external_ips=tenth,
        source_ranges=tenth,
        external_local=tenth,
        internal_local=tenth,
        without_endpoints=tenth,
        udp=tenth,
    )


def cut_some(paths: Sequence[Path]) -> tuple[str, ...]:
    """Truncate each hundredth archive, beginning with the fourth, and return their paths."""
    cut = paths[3::_CUT_EVERY]
    for path in cut:
        path.write_bytes(path.read_bytes()[:_CUT_TO])
    return tuple(map(str, cut))


def replaying_worker(besides: Collection[int] = ()) -> int | None:
    """Return a worker that is replaying (a child of this process that has a child); None if there is none.

    ``besides`` are other children, such as a server that forks workers for this process.
    """
    parents = _parents()
    ours = _children(parents) - set(besides)
    return next((parent for parent in parents.values() if parent in ours), None)


def children() -> frozenset[int]:
    """Return the children of this process."""
    return _children(_parents())


def _children(parents: Mapping[int, int]) -> frozenset[int]:
    return frozenset(pid for pid, parent in parents.items() if parent == os.getpid())


def _parents() -> dict[int, int]:
    """Return the parent of every process."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        parents[int(stat.parent.name)] = int(words[1])
    return parents


@dataclass(slots=True)
class Killer:
    """Kills one worker after a number of snapshots."""

    when: int
    killed: list[int] = field(default_factory=list)
    besides: frozenset[int] = frozenset()

    def progress(self, done: int) -> None:
        """Kill the worker if enough snapshots are done."""
        if self.killed or done < self.when:
            return
        worker = replaying_worker(self.besides)
        if worker is not None:
            os.kill(worker, signal.SIGKILL)
            self.killed.append(worker)


def main(arguments: list[str] | None = None) -> int:
    """Run the measurement; return the exit status, 2 and 3 as for ``nfparity assess``."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.lab.bench.fleet",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--nodes", type=int, default=1000, metavar="N", help="default: 1000")
    parser.add_argument(
        "--services", type=int, default=20, metavar="N", help="number of services of the cluster; default: 20"
    )
    parser.add_argument(
        "--workers", type=int, metavar="N", help="number of workers; default: one for each processor"
    )
    parser.add_argument(
        "--corpus",
        action="store_true",
        help="also generate a corpus for each node, in addition to the detectors' flows",
    )
    settings = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="nfparity-fleet-") as folder:
            return _run(settings, Path(folder))
    except NfparityError as e:
        print(f"bench: {e}", file=sys.stderr)
        return 3


def _run(settings: argparse.Namespace, folder: Path) -> int:
    paths = list(write_fleet(draw_cluster(shape_of(settings.services)), folder, settings.nodes))
    cut = cut_some(paths)
    killer = Killer(settings.nodes // 3)
    options = AssessOptions(corpus=settings.corpus)
    names = [str(path) for path in paths]
    load, began = load_average(), time.monotonic()
    with progress(sys.stderr) as shown:

        def tell(answer: Answer, done: int, again: bool) -> None:
            shown("nodes", done, len(names))
            killer.progress(done)

        with dask_pool(options, workers=settings.workers, scheduler=None) as pool:
            answers = gather_answers(pool, names, tell)
    took = time.monotonic() - began
    fleet = fleet_of(answers)
    print_fleet(fleet, sys.stdout)
    _print_cost(fleet, took, load, killer)
    failed = {a.path for a in answers if a.failure is not None}
    return int(failed != set(cut) or len(answers) != len(names) or not killer.killed)


def _print_cost(fleet: Fleet, took: float, load: str, killer: Killer) -> None:
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = children.ru_utime + children.ru_stime
    each = f"{took:.0f} s, {took / fleet.nodes:.2f} s each"
    print(f"\n{fleet.nodes} snapshots in {each} (load average before: {load})")
    print(f"processor time of workers: {cpu:.0f} s; of this process: {own.ru_utime + own.ru_stime:.0f} s")
    print(f"largest worker: {children.ru_maxrss >> 10} MiB; this process: {own.ru_maxrss >> 10} MiB")
    print(f"killed during the run: {len(killer.killed)} worker; not assessed: {fleet.failed}")


if __name__ == "__main__":
    sys.exit(main())
