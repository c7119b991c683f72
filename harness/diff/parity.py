"""The differential test: every backend against the reference, flow by flow and share by share.

For each batch, the reference first computes every possible outcome. Then every other backend runs the same
flows. The times of packets are left out, because no test can set a kernel's clock. Several batches and
backends run at the same time. Flows with random outcomes run until each outcome is seen
(:mod:`harness.diff.sampling`), and on request often enough to test the shares.
"""

from __future__ import annotations

import itertools
import shlex
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from backends.model.clock import at_present
from backends.model.contract import Backend, Job
from backends.model.flow import Flow
from backends.model.outcome import FlowResult
from harness.corpus.formats.outcomes import probability_text
from harness.corpus.formats.ruletext import place
from harness.diff.backends import REFERENCE, backend
from harness.diff.batch import Batch
from harness.diff.compare import mismatches, step_text
from harness.diff.entrances import ALONE, SharedRuns, lightly, shared_runs
from harness.diff.mismatch import Mismatch
from harness.diff.replay import Progress, Replayed, ReplayOptions, Replays, replay
from harness.diff.result import BackendReport, CaseResult, Difference, ParityReport
from harness.diff.sampling import MISS, Sampling
from harness.diff.share_counts import share_tallies
from harness.diff.shares import FALSE_ALARM_RATE, Tally, Unfair, unfair_shares
from translate.dataclass import dataclass, replace
from translate.errors import InputError, MachineError, Note, UnsupportedError
from translate.ir import Family, Rule

__all__ = [
    "Plan",
    "Rules",
    "choose_backends",
    "run_parity",
]

Rules = Callable[[Job, Flow, Mismatch], tuple[Rule | str, ...]]
"""A function that returns the rules that decided the expected side of a mismatch; other causes are text."""

_EXPLAINED = 50  # the most differences that are traced for their deciding rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The parameters of a run. ``options`` are the command-line words needed to replay one flow.

    Flows with random outcomes run until the chance of missing an outcome is at most ``miss``. With ``repeat``
    they run at least that many times, and their shares are tested. ``against`` is the file of a given
    nftables ruleset, and ``against_names`` has the names of its backends, one for each order of registration;
    ``with_iptables`` is the file of the iptables rules that are loaded with it. Of the flows that others
    resemble, backends in ``lightly`` run few, and each once (:func:`harness.diff.entrances.lightly`).
    """

    batches: tuple[Batch, ...]
    level: int = 2
    repeat: int = 0
    miss: float = MISS
    false_alarm_rate: float = FALSE_ALARM_RATE
    options: tuple[str, ...] = ()
    against: str | None = None
    against_names: frozenset[str] = frozenset()
    with_iptables: str | None = None
    lightly: frozenset[str] = frozenset()

    @property
    def sampling(self) -> Sampling:
        """The number of runs per flow."""
        return Sampling(self.miss, max(1, self.repeat))


@dataclass(slots=True)
class _Bench:
    """A batch with the reference's results."""

    batch: Batch
    job: Job
    flows: tuple[Flow, ...]
    expected: tuple[FlowResult, ...]
    shared: SharedRuns
    """The flows that run once, unless that run differs, and those that share their runs."""

    def times(self, sampling: Sampling) -> Iterator[int]:
        """Yield the number of first runs of each flow."""
        for flow, expected in zip(self.flows, self.expected, strict=True):
            if flow.id in self.shared.together:
                yield sampling.shared_runs(flow, expected, self.shared.together[flow.id])
            else:
                yield 1 if flow.id in self.shared.briefly else sampling.first_runs(flow, expected)

    def lightly(self) -> _Bench:
        """Return the part of a light trial."""
        alike = self.batch.alike or frozenset()
        chosen = lightly(self.flows, self.expected, alike)
        return replace(
            self,
            flows=tuple(itertools.compress(self.flows, chosen)),
            expected=tuple(itertools.compress(self.expected, chosen)),
            shared=SharedRuns(self.shared.briefly | alike, self.shared.together),
        )


class _Counts:
    """Adds up each backend's finished flows over the batches, some of which it replays at the same time."""

    def __init__(self, progress: Progress, total: int) -> None:
        self.total = total
        self._progress = progress
        self._finished: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._left_out: Counter[str] = Counter()

    def leave_out(self, name: str, flows: int) -> None:
        """Record that a backend does not replay some flows."""
        self._left_out[name] += flows

    def of_another_batch(self) -> Progress:
        """Return the progress callback of a batch."""
        before: Counter[str] = Counter()

        def report(name: str, done: int, _: int) -> None:
            with self._lock:
                self._finished[name] += done - before[name]
                before[name] = done
                self._progress(name, self._finished[name], self.total - self._left_out[name])

        return report


def choose_backends(
    names: Sequence[str], *, requested: bool, make: Callable[[str], Backend] = backend
) -> tuple[tuple[Backend, ...], tuple[BackendReport, ...]]:
    """Return the backends that can run here, and a report for each that cannot.

    A backend that cannot run is reported as not tested if it was ``requested`` by name, otherwise as skipped.
    Raises MachineError if none can run; InputError if there is only the reference.
    """
    if not [n for n in names if n != REFERENCE]:
        raise InputError(f"no backend to compare with the {REFERENCE}; name another backend")
    able: list[Backend] = []
    others: list[BackendReport] = []
    reasons: list[str] = []
    for name in names:
        if name == REFERENCE:
            continue
        backend = make(name)
        availability = backend.probe()
        if availability.ok:
            able.append(backend)
            continue
        reasons.append(f"{name} cannot run here: {availability.reason}")
        if requested:
            reason = f"cannot run here: {availability.reason}"
            others.append(BackendReport(name=name, untested=(reason,)))
        else:
            others.append(BackendReport(name=name, skipped=availability.reason))
    if not able:
        raise MachineError("\n".join((*reasons, "nfparity doctor lists what to install")))
    return tuple(able), tuple(others)


def run_parity(
    plan: Plan,
    backends: Sequence[Backend],
    *,
    reference: Backend,
    rules: Rules,
    requested: bool = False,
    progress: Progress,
) -> ParityReport:
    """Run the plan and return the report.

    If a ``requested`` backend refuses the rules of a batch, its UnsupportedError is raised; another backend's
    flows are reported as not tested. Raises MachineError when the machine fails.
    """
    counts = _Counts(progress, sum(len(b.flows) for b in plan.batches))
    benches: list[_Bench] = []
    parts: list[_Bench] = []
    runs_of: dict[str, list[tuple[_Bench, Replayed]]] = {b.name: [] for b in backends}
    notes: dict[Note, None] = {}
    with Replays() as replays:
        # Batches run side by side: one waits for a compiler or for packets, while another uses the processor.
        for batch in plan.batches:
            bench = _ask_reference(batch, plan, reference, counts.of_another_batch())
            benches.append(bench)
            report = counts.of_another_batch()
            for backend in backends:
                part = bench
                if backend.name in plan.lightly:
                    part = bench.lightly()
                    counts.leave_out(backend.name, len(bench.flows) - len(part.flows))
                parts.append(part)
                replays.add(
                    backend,
                    part.job,
                    part.flows,
                    ReplayOptions(
                        progress=report,
                        expected=part.expected,
                        sampling=plan.sampling,
                        briefly=part.shared.briefly,
                        together=part.shared.together,
                        kept=plan.repeat > 0,
                    ),
                )
        for part, replayed in zip(parts, replays.results(), strict=True):
            if replayed.refusal is not None and requested:
                raise replayed.refusal
            runs_of[replayed.backend].append((part, replayed))
            notes.update(dict.fromkeys(replayed.limits))
    differences: list[Difference] = []
    reports: list[BackendReport] = []
    tests = 0
    for name, runs in runs_of.items():
        differing, tested = _judge(name, runs, plan, rules, explained=len(differences))
        tests += tested
        reports.append(_reported(name, runs, differing))
        differences.extend(differing)
    times = [number for bench in benches for number in bench.times(plan.sampling)]
    return ParityReport(
        level=None if all(b.name in plan.against_names for b in backends) else plan.level,
        flows=counts.total,
        chancy=sum(n > 1 for n in times),
        repeated=sum(times) - counts.total,
        miss=plan.miss,
        left_open=sum(result.is_open for bench in benches for result in bench.expected),
        open_rules=_open_rules(benches),
        share_tests=tests,
        false_alarm_rate=plan.false_alarm_rate,
        backends=tuple(reports),
        differences=tuple(differences),
        notes=tuple(notes),
        assumed=tuple(dict.fromkeys(a for b in plan.batches for a in b.node.assumed)),
    )


def _open_rules(benches: Iterable[_Bench]) -> tuple[str, ...]:
    """Return the rules that leave the outcome of some flow open, each with the reason."""
    reasons: dict[str, None] = {}
    for bench in benches:
        if any(result.is_open for result in bench.expected):
            rules = ((rule, unknown) for rule, unknown in bench.job.ruleset.unknowns() if rule.is_undecided)
            reasons |= {f"{rule.origin.place}: {unknown.reason}": None for rule, unknown in rules}
    return tuple(reasons)


def _reported(
    name: str, runs: Sequence[tuple[_Bench, Replayed]], differences: Sequence[Difference]
) -> BackendReport:
    cases: list[CaseResult] = []
    untested: dict[str, None] = {}
    for bench, replayed in runs:
        if replayed.refusal is None:
            cases += (CaseResult(result.flow_id, result.seconds) for result in replayed.results)
            continue
        reason = _refusal(replayed.refusal)
        untested.setdefault(reason)
        cases += (CaseResult(flow.id, untested=reason) for flow in bench.flows)
    return BackendReport(
        name=name,
        flows=sum(case.untested is None for case in cases),
        differing=len({difference.flow_id for difference in differences}),
        untested=tuple(untested),
        cases=tuple(cases),
    )


def _refusal(error: UnsupportedError) -> str:
    first, rest = error.refusals[0].render(), len(error.refusals) - 1
    return f"cannot express the rules: {first}" + (f"\nand {rest} more" if rest else "")


def _ask_reference(batch: Batch, plan: Plan, reference: Backend, progress: Progress) -> _Bench:
    job = Job(rules=batch.rules, node=batch.node, level=plan.level)
    flows = tuple(at_present(flow) for flow in batch.flows)
    (replayed,) = replay([reference], job, flows, ReplayOptions(progress=progress))
    if replayed.refusal is not None:
        raise replayed.refusal
    shared = ALONE
    if batch.alike is not None and plan.repeat == 0:
        shared = shared_runs(flows, replayed.results, batch.alike)
    return _Bench(batch, job, flows, replayed.results, shared)


def _judge(
    name: str,
    runs: Sequence[tuple[_Bench, Replayed]],
    plan: Plan,
    rules: Rules,
    *,
    explained: int,
) -> tuple[list[Difference], int]:
    differences: list[Difference] = []
    tallies: list[tuple[_Bench, Tally]] = []
    for bench, replayed in runs:
        if replayed.refusal is not None:
            continue
        for flow, paths in zip(bench.flows, replayed.differing, strict=True):
            for mismatch in mismatches(paths):
                deciding: tuple[Rule | str, ...] = ()
                if explained + len(differences) < _EXPLAINED and mismatch.branch is not None:
                    deciding = rules(bench.job, flow, mismatch)
                differences.append(_difference(name, bench, flow, mismatch, deciding, plan))
        if plan.repeat:
            tallies.extend((bench, t) for t in share_tallies(bench.flows, bench.expected, replayed.results))
    for unfair in unfair_shares([t for _, t in tallies], false_alarm_rate=plan.false_alarm_rate):
        bench = next(b for b, t in tallies if t.flow_id == unfair.flow_id)
        differences.append(_share_difference(name, bench, unfair, plan))
    return differences, sum(len(t.probabilities) for _, t in tallies)


def _command(name: str, batch: Batch, flow_id: str, plan: Plan, *, repeat: int = 0) -> str:
    words = ["nfparity", "diff", batch.rules_path]
    if batch.rules.family is not Family.IP and "--family" not in plan.options:
        words += ["--family", batch.rules.family.value]
    if batch.corpus is not None:
        words += ["--corpus", batch.corpus]
    if batch.node_path is not None:
        words += ["--node", batch.node_path]
    words += ["--only", flow_id]
    if plan.against is not None and name in plan.against_names:
        words += ["--against", plan.against]
        words += [] if plan.with_iptables is None else ["--with-iptables", plan.with_iptables]
    else:
        words += ["--backends", name, "-O", str(plan.level)]
    words += plan.options
    if repeat:
        words += ["--repeat", str(repeat)]
    return shlex.join(words)


def _difference(
    name: str, bench: _Bench, flow: Flow, mismatch: Mismatch, rules: tuple[Rule | str, ...], plan: Plan
) -> Difference:
    return Difference(
        backend=name,
        flow_id=flow.id,
        flow_source=flow.source,
        step=mismatch.step,
        step_text=step_text(flow, mismatch.step),
        field=mismatch.field,
        expected=mismatch.expected,
        observed=mismatch.observed,
        rules=tuple(rule if isinstance(rule, str) else place(rule) for rule in rules),
        command=_command(name, bench.batch, flow.id, plan),
        rules_path=bench.batch.rules_path,
        origins=tuple(rule.origin for rule in rules if isinstance(rule, Rule)),
        branch=mismatch.branch,
    )


def _share_difference(name: str, bench: _Bench, unfair: Unfair, plan: Plan) -> Difference:
    """Return the difference for an unfair share, without the observed count, which is random."""
    flow = next(f for f in bench.flows if f.id == unfair.flow_id)
    seldom = unfair.count < unfair.runs * unfair.expected
    return Difference(
        backend=name,
        flow_id=flow.id,
        flow_source=flow.source,
        step=None,
        step_text=f"{unfair.what} {unfair.branch + 1}",
        field="share",
        expected=probability_text(unfair.expected),
        observed=f"{'less' if seldom else 'more'} often, at p < {unfair.threshold:.1e}",
        rules=(),
        command=_command(name, bench.batch, flow.id, plan, repeat=plan.repeat),
        rules_path=bench.batch.rules_path,
    )
