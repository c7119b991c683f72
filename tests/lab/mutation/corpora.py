"""The same faults under two corpora: one in which services stand for each other, and a full one.

``python -m tests.lab.mutation.corpora`` draws clusters of a few dozen services of every kind, of both
families, and plants faults in their translations. A fault that the full corpus shows must be shown by
the other one, also where it is in the constants of a service that was not searched. Both corpora are replayed
as they are generated, with the repetitions of :mod:`~tests.lab.mutation.ground` alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from backends.model.contract import Job
from backends.simulator import SimulatorBackend
from harness.corpus.generate import generate_corpus
from harness.diff.batch import Batch
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from tests.lab.mutation.fault import Fault
from tests.lab.mutation.ground import Ground, prepare
from tests.lab.mutation.hunt import Caught, Verdict, hunt
from tests.lab.mutation.planter import Planter
from tests.lab.mutation.stand import Stand
from tests.lab.mutation.trial import FEW, PLANTERS, SUBJECTS
from translate.errors import MachineError
from translate.ir import Family, Ruleset
from translate.passes import lower
from translate.read import read_ruleset

__all__ = ["SHAPES", "Compared", "Corpora", "corpora", "try_both"]

_NODE_PORTS: Final = Shape(
    services=36, endpoints=2, node_ports=12, affinity=12, udp=6, without_endpoints=4, base=False, seed=3
)
_BALANCERS: Final = Shape(
    services=36,
    endpoints=2,
    load_balancers=36,
    source_ranges=12,
    external_local=12,
    affinity=12,
    without_endpoints=6,
    base=False,
    seed=3,
)
_INTERNAL: Final = Shape(
    services=24, endpoints=2, external_ips=12, internal_local=12, without_endpoints=8, base=False, seed=3
)

SHAPES: Final = {
    "node-ports": _NODE_PORTS,
    "balancers": _BALANCERS,
    "internal": _INTERNAL,
}
"""Clusters with classes of services of which some are not searched."""

_MANY: Final = 400
"""The repetitions of one flow to each service."""


@dataclass(frozen=True, slots=True)
class Corpora:
    """Rules with the flows of both corpora."""

    ruleset: Ruleset
    few: tuple[Ground, ...]
    every: tuple[Ground, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """The faults planted in a subject, how many the corpus by classes showed, and the others.

    ``missed``: those that the full corpus alone shows; ``hidden``: those that neither shows.
    """

    planted: int
    shown: int
    missed: tuple[Fault, ...]
    hidden: tuple[Fault, ...]


def corpora(shape: Shape) -> Corpora:
    """Draw a cluster, and make both corpora of its rules."""
    cluster = draw_cluster(shape)
    text = kube_proxy_rules(cluster).encode()
    ruleset = read_ruleset(text, name="cluster", family=shape.family)
    job = Job(rules=ruleset, node=cluster.node)
    few, every = (
        prepare([_batch(job, by_class=by_class)], SimulatorBackend(), few=FEW, many=_MANY)
        for by_class in (True, False)
    )
    return Corpora(ruleset, few, every)


def _batch(job: Job, *, by_class: bool) -> Batch:
    flows = generate_corpus(job, seed=0, by_class=by_class).flows
    return Batch(rules_path="cluster", rules=job.ruleset, node=job.node, flows=flows, corpus=None)


def try_both(of: Corpora, subject: str, *, every: int) -> Compared:
    """Plant every ``every``-th fault of a subject under the corpus by classes, and what it misses under both.

    Raises MachineError when flows show a difference with nothing planted.
    """
    kind, level = SUBJECTS[subject]
    planter = PLANTERS[kind](lower(of.ruleset, level=level))
    chosen = planter.faults[::every]
    tried = _tried(planter, chosen, of.few)
    left = [trial.fault for trial in tried if trial.verdict is Verdict.SURVIVED]
    again = _tried(planter, left, of.every)
    return Compared(
        planted=len(chosen),
        shown=sum(trial.verdict is Verdict.CAUGHT for trial in tried),
        missed=tuple(trial.fault for trial in again if trial.verdict is not Verdict.SURVIVED),
        hidden=tuple(trial.fault for trial in again if trial.verdict is Verdict.SURVIVED),
    )


def _tried(planter: Planter[Any], faults: Sequence[Fault], grounds: Sequence[Ground]) -> list[Caught]:
    planter.choose(faults)
    proven = frozenset(fault for fault in faults if planter.unchanged(fault) is not None)
    with Stand(planter, grounds) as stand:
        if flaw := stand.first_difference(None):
            raise MachineError(f"differs without any fault: {flaw}")
        return list(hunt(faults, stand, proven=proven))


def main() -> int:
    """Print what each corpus shows; 1 when the corpus by classes misses a fault that the other one shows."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.mutation.corpora", description=__doc__)
    parser.add_argument("--clusters", default=",".join(SHAPES), help=f"of {', '.join(SHAPES)}")
    parser.add_argument("--subjects", default=",".join(SUBJECTS), help=f"of {', '.join(SUBJECTS)}")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="plant only every Nth fault")
    options = parser.parse_args()
    words = "".join(f"{word:>9}" for word in ("flows", "of", "planted", "shown", "neither", "missed"))
    print(f"{'cluster':16}{'subject':8}{words}", flush=True)
    status = 0
    for name, both in _drawn(options.clusters.split(",")):
        for subject in options.subjects.split(","):
            result = try_both(both, subject, every=options.every)
            flows = [sum(len(g.batch.flows) for g in groups) for groups in (both.few, both.every)]
            counts = *flows, result.planted, result.shown, len(result.hidden), len(result.missed)
            print(f"{name:16}{subject:8}{''.join(f'{count:9}' for count in counts)}", flush=True)
            for fault in result.missed:
                status = 1
                print(f"MISSED {fault.key}", flush=True)
    return status


def _drawn(names: Sequence[str]) -> Iterator[tuple[str, Corpora]]:
    for name in names:
        for family in Family:
            yield f"{name} {family.value}", corpora(replace(SHAPES[name], family=family))


if __name__ == "__main__":
    sys.exit(main())
