"""Parity of rules with the corpus that is generated from them, on every backend and at every level.

``python -m tests.lab.selfcheck`` takes files of rules, or the clusters of a file
(:mod:`tests.lab.kuberules`), makes flows for each rule and service, and replays them. Flows from inside the
cluster to each service are replayed many times, so that every endpoint is chosen and the shares are tested.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from backends.model.contract import Backend, Job
from backends.model.flow import Flow
from backends.model.node import Node
from harness.corpus.generate import generate_corpus
from harness.diff.backends import BACKENDS, REFERENCE, backend, parse_backends
from harness.diff.batch import Batch
from harness.diff.deciding_rules import deciding_rules
from harness.diff.parity import Plan, choose_backends, run_parity
from harness.diff.result import ParityReport
from harness.files.userfiles import read_bytes
from harness.report.text import print_parity
from harness.status import worst_status
from nfparity.inputs.batches import load_node
from nfparity.inputs.rules import load_rules
from tests.lab.errors import print_error
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from translate.errors import InputError, MachineError
from translate.ir import Family, Ruleset
from translate.read import read_ruleset

__all__ = [
    "CLUSTERS",
    "LEVELS",
    "REPEAT",
    "Subject",
    "check",
    "check_options",
    "cluster_subject",
    "print_checks",
    "read_clusters",
    "subject_of",
]

CLUSTERS: Final = "tests/corpus/kube-proxy.toml"
"""The clusters that are checked by default; relative to the project's root."""

LEVELS: Final = (0, 1, 2)
"""The optimisation levels that are checked."""

REPEAT: Final = 24
"""The repetitions of a flow to each service: one of three endpoints is missed once in 17,000."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Rules on a node, and the flows that are made from them; ``name`` is for reports."""

    name: str
    ruleset: Ruleset
    node: Node
    flows: tuple[Flow, ...]


def read_clusters(path: str) -> dict[str, Shape]:
    """Read the clusters of a TOML file: a table for each, with the fields of :class:`Shape`.

    Raises InputError for a table that is not a Shape.
    """
    import tomllib

    try:
        data = tomllib.loads(read_bytes(path).decode())
        return {name: _shape(values) for name, values in data.items()}
    except (TypeError, ValueError, AttributeError) as e:
        raise InputError(f"{path}: {e}") from e


def _shape(values: dict[str, Any]) -> Shape:
    unknown = set(values) - {f.name for f in fields(Shape)}
    if unknown:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    return Shape(**{**values, "family": Family(values.get("family", "ip"))})


def subject_of(name: str, ruleset: Ruleset, node: Node) -> Subject:
    """Make the flows of ``ruleset`` on ``node``; equal inputs give equal flows."""
    made = generate_corpus(Job(rules=ruleset, node=node), seed=0, exhaustive=True)
    if made.coverage.missed:
        places = ", ".join(r.rule.origin.place for r in made.coverage.missed)
        raise InputError(f"{name}: no flow reaches {places}")
    return Subject(name, ruleset, node, made.flows)


def cluster_subject(name: str, shape: Shape) -> Subject:
    """Draw a cluster and make the flows of its rules."""
    cluster = draw_cluster(shape)
    text = kube_proxy_rules(cluster)
    return subject_of(name, read_ruleset(text.encode(), name=name, family=shape.family), cluster.node)


def check(
    subject: Subject, backends: Sequence[Backend], *, level: int, repeat: int = REPEAT
) -> Iterator[ParityReport]:
    """Yield the reports on every flow once, and on a flow to each service ``repeat`` times."""
    uses = tuple(f for f in subject.flows if f.id.startswith("service-") and f.id.endswith("-inside"))
    for flows, times in ((subject.flows, 0), (uses, repeat)):
        if flows and (times or flows is subject.flows):
            yield run_parity(
                Plan(batches=(_batch(subject, flows),), level=level, repeat=times),
                backends,
                reference=backend(REFERENCE),
                rules=deciding_rules,
                progress=lambda *_: None,
            )


def _batch(subject: Subject, flows: tuple[Flow, ...]) -> Batch:
    return Batch(rules_path=subject.name, rules=subject.ruleset, node=subject.node, flows=flows, corpus=None)


def _subjects(options: argparse.Namespace) -> Iterator[Subject]:
    for path in options.rules:
        yield _file_subject(path, options.node)
    if not options.rules:
        for name, shape in read_clusters(options.clusters).items():
            if not options.only or name in options.only:
                yield cluster_subject(name, shape)


def _file_subject(path: str, node: str | None) -> Subject:
    ruleset = load_rules(path)
    return subject_of(path, ruleset, load_node(node, ruleset))


def check_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of :func:`print_checks`."""
    parser.add_argument("--backends", metavar="A,B", default=",".join(BACKENDS), help="default: all")
    parser.add_argument("--levels", default=",".join(map(str, LEVELS)), help="default: %(default)s")


def print_checks(subjects: Iterable[Subject], options: argparse.Namespace, *, repeat: int = 0) -> int:
    """Print a line for each subject, level and backend, and the differences; return the worst exit status."""
    able, skipped = choose_backends(parse_backends(options.backends), requested=False)
    for choice in skipped:
        print(f"{choice.name} is skipped: {choice.skipped}")
    worst = 0
    for subject in subjects:
        rules = sum(1 for _ in subject.ruleset.rules())
        print(f"{subject.name}: {rules} rules, {len(subject.flows)} flows", flush=True)
        levels = [int(level) for level in options.levels.split(",")]
        for level in levels:
            carriers = [b for b in able if level == levels[0] or level <= _highest(b.name)]
            reports = tuple(check(subject, carriers, level=level, repeat=repeat))
            for carrier in carriers:
                _print(carrier.name, level, reports)
            for report in reports:
                if not report.parity:
                    print_parity(report, sys.stdout)
                worst = worst_status((worst, report.status))
    return worst


def _highest(name: str) -> int:
    """Return the highest level to check: 0 for iptables, which loads the rules unchanged."""
    return 0 if name.startswith("iptables-") else max(LEVELS)


def _print(name: str, level: int, reports: Sequence[ParityReport]) -> None:
    mine = [(r, b) for r in reports for b in r.backends if b.name == name]
    reason = next((why for _, b in mine for why in b.untested), None)
    result = f"not tested: {reason}"
    if reason is None:
        flows, differing = sum(b.flows for _, b in mine), sum(b.differing for _, b in mine)
        result = f"{flows:7} flows {differing:5} different"
    print(f"  -O{level} {name:<16} {result}", flush=True)


def main() -> int:
    """Check the rules of the command line; return the worst exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.selfcheck", description=__doc__)
    parser.add_argument("rules", metavar="RULES", nargs="*", help="files of rules; default: the clusters")
    parser.add_argument("--node", metavar="FILE", help="the node for RULES; inferred from them if absent")
    parser.add_argument("--clusters", metavar="FILE", default=CLUSTERS, help=f"default: {CLUSTERS}")
    parser.add_argument("--only", metavar="NAME", action="append", help="just this cluster (may be repeated)")
    check_options(parser)
    parser.add_argument("--repeat", type=int, default=REPEAT, metavar="N", help="default: %(default)s")
    options = parser.parse_args()
    try:
        return print_checks(_subjects(options), options, repeat=options.repeat)
    except (InputError, MachineError) as e:
        return print_error(e)


if __name__ == "__main__":
    sys.exit(main())
