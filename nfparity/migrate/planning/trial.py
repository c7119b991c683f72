"""The trial of a plan: packets through the translation alone, and through it together with the old rules."""

from __future__ import annotations

from backends.model.clock import at_present
from backends.model.contract import Backend, Job
from backends.model.flow import Flow
from backends.model.node import Node
from backends.model.variant import Variant
from backends.nftables.backend import NftablesBackend
from backends.replay.worker import Worker
from harness.diff.backends import REFERENCE, backend
from harness.diff.batch import Batch
from harness.diff.parity import Plan, run_parity
from harness.diff.replay import Progress
from harness.diff.result import ParityReport
from nfparity.migrate.planning.overlap import OverlapBackend
from nfparity.migrate.planning.rules import Rules
from nfparity.migrate.state.owned import list_table, load
from nfparity.watch.table_state import TableState, read_listing
from translate.dataclass import dataclass
from translate.errors import MachineError
from translate.ir import Family, Ruleset

__all__ = ["Corpus", "batch_of", "corpus", "expected_meaning", "try_alone", "try_both"]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Flows for every rule and service. ``alike`` are the ids of those that others resemble.

    They differ from the others in constants; few of them run until each outcome is seen. Some are left out,
    which show nothing that others do not (docs/decisions/0032-a-trial-of-a-plan-tests-each-thing-once.md).
    """

    flows: tuple[Flow, ...]
    alike: frozenset[str]


def corpus(ruleset: Ruleset, node: Node, seed: int) -> Corpus:
    """Return flows for every rule and service. Raises UnsupportedError."""
    from harness.corpus.generate import generate_flows

    made = generate_flows(Job(rules=ruleset, node=node), seed=seed, fewer=True)
    return Corpus(tuple([at_present(flow) for flow in made.flows]), made.alike)


def batch_of(rules: Rules, node: Node, tried: Corpus) -> Batch:
    """Return the flows of a trial with their rules and node."""
    return Batch(
        rules_path=rules.tried.sample.source,
        rules=rules.tried,
        node=node,
        flows=tried.flows,
        corpus=None,
        alike=tried.alike,
    )


def try_both(
    rules: Rules, node: Node, tried: Corpus, variant: Variant, level: int, progress: Progress
) -> ParityReport:
    """Send flows through the translation, and through both rulesets loaded together.

    Both together decide as the one that decides first, so there one packet of the flows that others resemble
    enters at each place (:func:`harness.diff.entrances.lightly`).

    Raises UnsupportedError for rules that nftables cannot express, MachineError if they cannot run.
    """
    both = OverlapBackend(variant, rules.left, emptied=False)
    backends = (_afterwards(rules, variant), both)
    return _parity(rules, node, tried, backends, level, progress, lightly=frozenset({both.name}))


def try_alone(
    rules: Rules, node: Node, tried: Corpus, variant: Variant, level: int, progress: Progress
) -> ParityReport:
    """Send flows through the final rulesets. Raises the errors of :func:`try_both`."""
    return _parity(rules, node, tried, (_afterwards(rules, variant),), level, progress)


def _afterwards(rules: Rules, variant: Variant) -> Backend:
    if rules.kept_rules.tables:
        return OverlapBackend(variant, rules.left, emptied=True)
    return NftablesBackend()


def expected_meaning(family: Family, text: str) -> TableState:
    """Return the state of the table after it is loaded in a private namespace.

    Raises MachineError with the message of nft.
    """
    with Worker(_Start()) as worker:
        listed = worker.ask(_LoadAndList(family, text))
    return read_listing(listed)


@dataclass(frozen=True, slots=True)
class _LoadAndList:
    family: Family
    text: str


@dataclass(frozen=True, slots=True)
class _Start:
    def __call__(self) -> _Lister:
        return _Lister()


@dataclass(frozen=True, slots=True)
class _Lister:
    def __call__(self, job: _LoadAndList) -> str:
        load(job.text)
        listed = list_table(job.family)
        if listed is None:
            raise MachineError("nft has loaded the table, but does not list it")
        return listed


def _parity(
    rules: Rules,
    node: Node,
    tried: Corpus,
    backends: tuple[Backend, ...],
    level: int,
    progress: Progress,
    lightly: frozenset[str] = frozenset(),
) -> ParityReport:
    for side in backends:
        availability = side.probe()
        if not availability.ok:
            raise MachineError(f"{side.name} cannot run here: {availability.reason}")
    return run_parity(
        Plan(batches=(batch_of(rules, node, tried),), level=level, lightly=lightly),
        backends,
        reference=backend(REFERENCE),
        rules=lambda job, flow, mismatch: (),
        requested=True,
        progress=progress,
    )
