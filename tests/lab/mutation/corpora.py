"""The same faults under two corpora: one made by classes of services, and an exhaustive one.

``python -m tests.lab.mutation.corpora`` draws five clusters of about ten services, of every kind, and plants
faults in their translations. The corpus by classes must show every fault that the exhaustive one shows, even
a fault in the constants of a service that was not searched. Both corpora are replayed as generated, with only
the repetitions of :mod:`~tests.lab.mutation.workload` added. With ``--fewer``, the flows of the trial of a
plan are compared with the corpus by classes: they may miss only what decision 32 names.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from backends.model.contract import Job
from backends.model.flow import Flow
from backends.simulator import SimulatorBackend
from harness.corpus.generate import generate_flows
from harness.diff.batch import Batch
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from tests.lab.mutation.fault import Fault
from tests.lab.mutation.hunt import Caught, Verdict, hunt
from tests.lab.mutation.planter import Planter
from tests.lab.mutation.testbed import Testbed
from tests.lab.mutation.trial import FEW, PLANTERS, SUBJECTS
from tests.lab.mutation.workload import Workload, prepare
from translate.errors import MachineError
from translate.ir import Family, Ruleset
from translate.passes import lower
from translate.read import read_ruleset

__all__ = ["SHAPES", "Compared", "Corpora", "corpora", "try_both"]

SHAPES: Final = {
    "external": Shape(services=9, endpoints=1, external_ips=9, base=False, seed=3),
    "internal6": Shape(
        family=Family.IP6, services=12, endpoints=2, internal_local=6, without_endpoints=4, base=False, seed=3
    ),
    "node-ports": Shape(services=10, endpoints=2, node_ports=10, affinity=10, base=False, seed=3),
    "balancers": Shape(services=18, endpoints=1, load_balancers=18, source_ranges=18, base=False, seed=3),
    "local": Shape(services=12, endpoints=1, node_ports=12, external_local=12, base=False, seed=13),
}
"""Clusters of about a hundred rules, in whose classes of services some members are not searched."""

_MANY: Final = 400
"""The repetitions of one flow to each service."""


@dataclass(frozen=True, slots=True)
class Corpora:
    """Rules with the flows of both corpora."""

    ruleset: Ruleset
    few: tuple[Workload, ...]
    every: tuple[Workload, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """The faults planted in a subject that load, and those of them that each corpus shows.

    ``missed``: those that the exhaustive corpus shows and the corpus by classes does not.
    """

    planted: int
    by_class: int
    by_every: int
    missed: tuple[Fault, ...]


def corpora(shape: Shape, *, fewer: bool = False) -> Corpora:
    """Draw a cluster, and make both corpora of its rules.

    ``fewer``: those are the flows of the trial of a plan, and the corpus by classes.
    """
    cluster = draw_cluster(shape)
    text = kube_proxy_rules(cluster).encode()
    ruleset = read_ruleset(text, name="cluster", family=shape.family)
    job = Job(rules=ruleset, node=cluster.node)
    flows = (
        generate_flows(job, seed=0, fewer=fewer).flows,
        generate_flows(job, seed=0, exhaustive=not fewer).flows,
    )
    few, every = (prepare([_batch(job, each)], SimulatorBackend(), few=FEW, many=_MANY) for each in flows)
    return Corpora(ruleset, few, every)


def _batch(job: Job, flows: tuple[Flow, ...]) -> Batch:
    return Batch(rules_path="cluster", rules=job.ruleset, node=job.node, flows=flows, corpus=None)


def try_both(of: Corpora, subject: str, *, every: int) -> Compared:
    """Plant every ``every``-th fault of a subject under both corpora.

    Raises MachineError when flows show a difference with nothing planted.
    """
    kind, level = SUBJECTS[subject]
    planter = PLANTERS[kind](lower(of.ruleset, level=level))
    chosen = planter.faults[::every]
    few, full = (_tried(planter, chosen, workloads) for workloads in (of.few, of.every))
    known, by_every = (
        [judged.fault for judged in each if judged.verdict is Verdict.CAUGHT] for each in (few, full)
    )
    return Compared(
        planted=sum(judged.verdict is not Verdict.REFUSED for judged in few),
        by_class=len(known),
        by_every=len(by_every),
        missed=tuple(fault for fault in by_every if fault not in known),
    )


def _tried(planter: Planter[Any], faults: Sequence[Fault], workloads: Sequence[Workload]) -> list[Caught]:
    planter.choose(faults)
    proven = frozenset(fault for fault in faults if planter.unchanged(fault) is not None)
    with Testbed(planter, workloads) as testbed:
        if flaw := testbed.first_difference(None):
            raise MachineError(f"differs without any fault: {flaw}")
        return list(hunt(faults, testbed, proven=proven))


def main() -> int:
    """Print the results; return 1 if the smaller corpus misses a fault that the larger one shows."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.mutation.corpora", description=__doc__)
    parser.add_argument("--clusters", default=",".join(SHAPES), help=f"of {', '.join(SHAPES)}")
    parser.add_argument("--subjects", default=",".join(SUBJECTS), help=f"of {', '.join(SUBJECTS)}")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="plant only every Nth fault")
    parser.add_argument(
        "--fewer",
        action="store_true",
        help="the flows of the trial of a plan, against the corpus by classes",
    )
    options = parser.parse_args()
    words = "".join(f"{word:>9}" for word in ("flows", "of", "planted", "shown", "of", "missed"))
    print(f"{'cluster':12}{'subject':8}{words}", flush=True)
    status = 0
    for name in options.clusters.split(","):
        both = corpora(SHAPES[name], fewer=options.fewer)
        flows = [sum(len(g.batch.flows) for g in groups) for groups in (both.few, both.every)]
        for subject in options.subjects.split(","):
            result = try_both(both, subject, every=options.every)
            counts = *flows, result.planted, result.by_class, result.by_every, len(result.missed)
            print(f"{name:12}{subject:8}{''.join(f'{count:9}' for count in counts)}", flush=True)
            for fault in result.missed:
                status = 1
                print(f"MISSED {fault.key}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
