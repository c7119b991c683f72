"""The differential test: every backend against the reference, flow by flow and share by share.

The reference says first what may happen. Flows on which it knows more than one way are repeated, if
asked, so that the shares can be tested; then every other backend runs the same flows.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from backends.contract import Backend, Job
from backends.flow import Flow
from backends.outcome import FlowResult
from harness.backends import REFERENCE, backend
from harness.batches import Batch
from harness.compare import Mismatch, compare, step_text
from harness.outcomes import probability_text
from harness.repeat import repetitions
from harness.replay import Progress, replay
from harness.shares import FALSE_ALARM_RATE, Tally, Unfair, unfair_shares
from harness.tallies import share_tallies
from translate.errors import InputError, MachineError, Note, UnsupportedError
from translate.ir import Family

__all__ = ["BackendReport", "Difference", "ParityReport", "Plan", "Rules", "choose_backends", "run_parity"]

Rules = Callable[[Job, Flow, Mismatch], tuple[str, ...]]
"""Names the rules that decided the reference's side of a mismatch, each as ``file:line: rule``."""

_EXPLAINED = 50  # tracing every one of thousands of differences would help nobody


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that a backend did differently, ready to be printed.

    ``rules`` are the reference's deciding rules; ``command`` replays just this flow.
    """

    backend: str
    flow_id: str
    flow_source: str
    step: int | None
    step_text: str
    field: str
    expected: object
    observed: object
    rules: tuple[str, ...]
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendReport:
    """What one backend came to. ``skipped`` says why it did not run at all."""

    name: str
    flows: int = 0
    differing: int = 0
    skipped: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityReport:
    """The whole result. ``differences`` are in the order of backends and flows.

    ``notes`` are differences that are known without a packet. ``level`` is None when nothing was
    translated: all that ran was a given ruleset.
    """

    level: int | None
    flows: int
    repeated: int
    share_tests: int
    false_alarm_rate: float
    backends: tuple[BackendReport, ...]
    differences: tuple[Difference, ...]
    assumed: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def parity(self) -> bool:
        """Whether no difference was seen."""
        return not self.differences


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do. ``options`` are words of the command line that a replay of one flow needs.

    ``against`` is the file of a given nftables ruleset, which is also the name of its backend, and
    ``beside`` that of the iptables rules which are loaded with it.
    """

    batches: tuple[Batch, ...]
    level: int = 2
    repeat: int = 0
    false_alarm_rate: float = FALSE_ALARM_RATE
    options: tuple[str, ...] = ()
    against: str | None = None
    beside: str | None = None


@dataclass(slots=True)
class _Bench:
    """A batch with the reference's word on it."""

    batch: Batch
    job: Job
    flows: list[Flow]
    expected: list[FlowResult]
    repeats: dict[str, str] = field(default_factory=dict)
    """Id of a repetition → id of the flow that it repeats."""


def choose_backends(
    names: Sequence[str], *, requested: bool, make: Callable[[str], Backend] = backend
) -> tuple[tuple[Backend, ...], tuple[BackendReport, ...]]:
    """Return the backends that can run here, and a report for each that cannot.

    Raises MachineError when one that was ``requested`` by name cannot run, or none can;
    InputError when there is none but the reference.
    """
    if not [n for n in names if n != REFERENCE]:
        raise InputError(f"nothing to compare the {REFERENCE} with; name another backend")
    able: list[Backend] = []
    skipped: list[BackendReport] = []
    for name in names:
        if name == REFERENCE:
            continue
        one = make(name)
        availability = one.probe()
        if availability.ok:
            able.append(one)
        else:
            skipped.append(BackendReport(name=name, skipped=availability.reason))
    if skipped and (requested or not able):
        reasons = "\n".join(f"{s.name} cannot run here: {s.skipped}" for s in skipped)
        raise MachineError(f"{reasons}\nnfparity doctor says what to install")
    return tuple(able), tuple(skipped)


def run_parity(
    plan: Plan,
    backends: Sequence[Backend],
    *,
    reference: Backend,
    rules: Rules,
    requested: bool = False,
    progress: Progress,
) -> ParityReport:
    """Run the plan and return what was found.

    A backend that refuses the rules is skipped with its refusals, unless it was ``requested``:
    then its UnsupportedError is raised. Raises MachineError when the machine fails.
    """
    benches = [_ask_reference(b, plan, reference, progress) for b in plan.batches]
    total = sum(len(b.flows) for b in benches)
    seen: dict[str, list[tuple[_Bench, tuple[FlowResult, ...]]]] = {b.name: [] for b in backends}
    refused: dict[str, str] = {}
    notes: dict[Note, None] = {}
    done = 0
    for bench in benches:
        willing = [b for b in backends if b.name not in refused]
        report = _shifted(progress, done, total)
        for one in replay(willing, bench.job, bench.flows, progress=report):
            if one.refusal is not None:
                if requested:
                    raise one.refusal
                refused[one.backend] = _refusal(one.refusal)
            else:
                seen[one.backend].append((bench, one.results))
                notes.update(dict.fromkeys(one.limits))
        done += len(bench.flows)
    differences: list[Difference] = []
    reports: list[BackendReport] = []
    tests = 0
    for name, runs in seen.items():
        if name in refused:
            reports.append(BackendReport(name=name, skipped=refused[name]))
            continue
        found, tested = _judge(name, runs, plan, rules, explained=len(differences))
        tests += tested
        differing = len({d.flow_id for d in found})
        reports.append(BackendReport(name=name, flows=total, differing=differing))
        differences.extend(found)
    return ParityReport(
        level=None if all(b.name == plan.against for b in backends) else plan.level,
        flows=total,
        repeated=sum(len(b.repeats) for b in benches),
        share_tests=tests,
        false_alarm_rate=plan.false_alarm_rate,
        backends=tuple(reports),
        differences=tuple(differences),
        notes=tuple(notes),
        assumed=tuple(dict.fromkeys(a for b in plan.batches for a in b.node.assumed)),
    )


def _shifted(progress: Progress, before: int, total: int) -> Progress:
    return lambda name, done, _: progress(name, before + done, total)


def _refusal(error: UnsupportedError) -> str:
    first, rest = error.refusals[0].render(), len(error.refusals) - 1
    return f"cannot express the rules: {first}" + (f"\nand {rest} more" if rest else "")


def _ask_reference(batch: Batch, plan: Plan, reference: Backend, progress: Progress) -> _Bench:
    job = Job(ruleset=batch.ruleset, node=batch.node, level=plan.level)
    flows = list(batch.flows)
    bench = _Bench(batch, job, flows, list(_expect(reference, job, flows, progress)))
    again: list[Flow] = []
    for flow, result in zip(batch.flows, bench.expected, strict=True):
        if plan.repeat and len(result.branches) > 1:
            for one in repetitions(flow, plan.repeat):
                bench.repeats[one.id] = flow.id
                again.append(one)
    if again:
        bench.expected.extend(_expect(reference, job, again, progress))
        bench.flows.extend(again)
    return bench


def _expect(
    reference: Backend, job: Job, flows: Sequence[Flow], progress: Progress
) -> tuple[FlowResult, ...]:
    (one,) = replay([reference], job, flows, progress=progress)
    if one.refusal is not None:
        raise one.refusal
    return one.results


def _judge(
    name: str,
    runs: Sequence[tuple[_Bench, tuple[FlowResult, ...]]],
    plan: Plan,
    rules: Rules,
    *,
    explained: int,
) -> tuple[list[Difference], int]:
    found: list[Difference] = []
    tallies: list[tuple[_Bench, Tally]] = []
    for bench, results in runs:
        for flow, want, got in zip(bench.flows, bench.expected, results, strict=True):
            for mismatch in compare(flow, want, got):
                deciding: tuple[str, ...] = ()
                if explained + len(found) < _EXPLAINED and mismatch.branch is not None:
                    deciding = rules(bench.job, flow, mismatch)
                found.append(_difference(name, bench, flow, mismatch, deciding, plan))
        counted = share_tallies(bench.flows, bench.expected, results, bench.repeats)
        tallies.extend((bench, tally) for tally in counted)
    for unfair in unfair_shares([t for _, t in tallies], false_alarm_rate=plan.false_alarm_rate):
        bench = next(b for b, t in tallies if t.flow_id == unfair.flow_id)
        found.append(_share_difference(name, bench, unfair, plan))
    return found, sum(len(t.probabilities) for _, t in tallies)


def _command(name: str, batch: Batch, flow_id: str, plan: Plan, *, repeat: int) -> str:
    words = ["nfparity", "diff", batch.rules_path]
    if batch.ruleset.family is not Family.IP and "--family" not in plan.options:
        words += ["--family", batch.ruleset.family.value]
    if batch.corpus is not None:
        words += ["--corpus", batch.corpus]
    if batch.node_path is not None:
        words += ["--node", batch.node_path]
    words += ["--only", flow_id]
    if name == plan.against:
        words += ["--against", name]
        words += [] if plan.beside is None else ["--beside", plan.beside]
    else:
        words += ["--backends", name, "-O", str(plan.level)]
    words += plan.options
    if repeat:
        words += ["--repeat", str(repeat)]
    return shlex.join(words)


def _difference(
    name: str, bench: _Bench, flow: Flow, mismatch: Mismatch, rules: tuple[str, ...], plan: Plan
) -> Difference:
    original = bench.repeats.get(flow.id)
    repeat = 0 if original is None else int(flow.id.rpartition("#")[2])
    return Difference(
        backend=name,
        flow_id=flow.id,
        flow_source=flow.source,
        step=mismatch.step,
        step_text=step_text(flow, mismatch.step),
        field=mismatch.field,
        expected=mismatch.expected,
        observed=mismatch.observed,
        rules=rules,
        command=_command(name, bench.batch, original or flow.id, plan, repeat=repeat),
    )


def _share_difference(name: str, bench: _Bench, unfair: Unfair, plan: Plan) -> Difference:
    flow = next(f for f in bench.flows if f.id == unfair.flow_id)
    seen = Fraction(unfair.count, unfair.runs)
    return Difference(
        backend=name,
        flow_id=flow.id,
        flow_source=flow.source,
        step=None,
        step_text=f"{unfair.what} {unfair.way + 1}",
        field="share",
        expected=probability_text(unfair.expected),
        observed=f"{unfair.count} of {unfair.runs} ({float(seen):.4f}); p = {unfair.p_value:.1e}",
        rules=(),
        command=_command(name, bench.batch, flow.id, plan, repeat=plan.repeat),
    )
