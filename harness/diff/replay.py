"""Replay of flows through several backends, each in its own session.

Kernel backends work in child processes, so threads are enough to run them in parallel. An error or Ctrl-C
closes every session before it propagates.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Self

from backends.model.contract import Backend, Job, Session
from backends.model.flow import Flow, Repeated
from backends.model.outcome import FlowResult
from backends.model.sourceports import port_boundaries, ports_alike
from backends.replay.successive import workers_kept
from backends.replay.worker import end_workers
from harness.diff.compare import DifferentPath, paths_shown
from harness.diff.leftout import with_errors_left_out
from harness.diff.sampling import ONCE, Sampling, Share, is_settled, with_runs
from translate.dataclass import dataclass, field, replace
from translate.errors import MachineError, Note, UnsupportedError

__all__ = ["Progress", "ReplayOptions", "Replayed", "Replays", "replay"]

Progress = Callable[[str, int, int], None]
"""Progress callback: the backend's name, the numbers of finished and of all flows. Threads may share it."""

_WORKERS = min(8, 2 * len(os.sched_getaffinity(0)))
"""Replays at a time. About half of its time a replay waits: for packets, and for its devices to close."""
_PATIENCE = 5.0
"""Seconds for backends to end properly after the replay failed or was interrupted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The results of one backend: one per flow in order, or the refusal of the rules.

    ``differing`` are the differences of each flow from its expected result, if there is one. ``limits`` are
    :attr:`Session.limits` of the backend.
    """

    backend: str
    results: tuple[FlowResult, ...] = ()
    differing: tuple[tuple[DifferentPath, ...], ...] = ()
    refusal: UnsupportedError | None = None
    limits: tuple[Note, ...] = ()


def _quiet(backend: str, done: int, total: int) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """The number of runs of each flow, and the callback for progress.

    With ``expected``, one result per flow, flows with random outcomes run as often as ``sampling`` requires;
    a flow without an expected result (None) runs once. Flows whose ids are in ``once`` run once and are not
    compared; of their results, only the outcomes count. Flows whose ids are in ``briefly`` run once, and as
    often as ``sampling`` requires if that run differs. ``together`` maps a flow that shares its runs with
    others to its share: they have the first runs of one, and each goes on until it has shown its outcomes.
    Backends with names in ``tracing`` run each flow once at first, because they may see that its outcome is
    settled. Unless ``kept``, the branches of flows that do not differ are forgotten: where NAT chooses ports,
    each run is one.
    """

    progress: Progress = _quiet
    expected: Sequence[FlowResult | None] = ()
    sampling: Sampling = ONCE
    once: Container[str] = field(default_factory=frozenset)
    briefly: Container[str] = field(default_factory=frozenset)
    together: Mapping[str, Share] = field(default_factory=dict)
    tracing: Container[str] = field(default_factory=frozenset)
    kept: bool = True


_DEFAULTS = ReplayOptions()


def replay(
    backends: Sequence[Backend], job: Job, flows: Sequence[Flow], options: ReplayOptions = _DEFAULTS
) -> tuple[Replayed, ...]:
    """Run all flows through all backends and return their results, in the order of ``backends``.

    A refusal of the rules is a result, not an error. Raises MachineError when a backend fails, after every
    session has been closed, and when a backend returns results for other flows than it was given.
    """
    with Replays() as replays:
        for backend in backends:
            replays.add(backend, job, flows, options)
        return tuple(replays.results())


class Replays:
    """Replays that run in the background, as many at a time as there are workers.

    A backend may be in several of them, each with a session of its own. Leaving the context with an error
    closes every session first.
    """

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=_WORKERS, thread_name_prefix="replay")
        self._futures: list[Future[Replayed]] = []
        self._workers = workers_kept()

    def __enter__(self) -> Self:
        self._workers.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._stop.set()
            self._pool.shutdown(wait=False, cancel_futures=True)
            # Sessions are generators and contexts: a thread that sees the flag leaves them properly. A thread
            # that waits for a hanging child process does not see it.
            if error is not None and wait(self._futures, timeout=_PATIENCE).not_done:
                end_workers()
            self._pool.shutdown(wait=True)
        finally:
            self._workers.__exit__(None, None, None)

    def add(
        self, backend: Backend, job: Job, flows: Sequence[Flow], options: ReplayOptions = _DEFAULTS
    ) -> None:
        """Add a replay of flows through one backend."""
        expected = options.expected or (None,) * len(flows)
        traced = backend.name in options.tracing
        once, briefly, together = options.once, options.briefly, options.together
        ports = port_boundaries(job.ruleset)
        routed = job.node.routes_everything(job.ruleset.family)
        sampling, kept = options.sampling, options.kept
        runs = _Runs(flows, expected, sampling, once, briefly, together, traced, kept, ports, routed)
        self._futures.append(self._pool.submit(_run, backend, job, runs, options.progress, self._stop))

    def results(self) -> Iterator[Replayed]:
        """Yield the results of all replays in the order in which they were added.

        Raises the error of the first replay that fails, even if an earlier one still runs.
        """
        pending = set(self._futures)
        for future in self._futures:
            while future in pending:
                # Waiting without a timeout would keep Ctrl-C from being seen on some platforms.
                done, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
                for finished in done:
                    finished.result()
            yield future.result()


@dataclass(frozen=True, slots=True)
class _Runs:
    """The flows, their expected results, and the number of their runs."""

    flows: Sequence[Flow]
    expected: Sequence[FlowResult | None]
    sampling: Sampling
    once: Container[str]
    briefly: Container[str]
    together: Mapping[str, Share]
    traced: bool
    kept: bool
    port_boundaries: tuple[int, ...] | None
    routed: bool
    """True if every packet has a route."""

    def first(self) -> Iterator[Flow | Repeated]:
        for request, expected in zip(self._first(), self.expected, strict=True):
            yield request if isinstance(request, Flow) else self._with_ports(request, expected)

    def _first(self) -> Iterator[Flow | Repeated]:
        for flow, expected in zip(self.flows, self.expected, strict=True):
            if flow.id in self.once:
                lists = expected is None or expected.lists
                yield Repeated(flow, 1, lists, watched=lists)
            elif expected is None:
                yield flow
            elif flow.id in self.briefly:
                yield with_runs(flow, 1, expected)
            elif flow.id in self.together:
                yield with_runs(flow, self._runs_shared(flow, expected), expected)
            elif self.traced:
                yield Repeated(flow, 1, expected.lists)
            else:
                yield self.sampling.with_first_runs(flow, expected)

    def decided(self, place: int, observed: FlowResult) -> FlowResult:
        """Return a result in which each error that the kernel left out counts as it is expected."""
        if self.routed:
            return observed
        return with_errors_left_out(self.flows[place], self.expected[place], observed)

    def differing(self, place: int, observed: FlowResult) -> tuple[DifferentPath, ...]:
        """Return the differences of the flow at an index."""
        flow, expected = self.flows[place], self.expected[place]
        if expected is None or flow.id in self.once:
            return ()
        return self.sampling.differing(flow, expected, observed)

    def again(
        self, place: int, observed: FlowResult, differing: tuple[DifferentPath, ...]
    ) -> Repeated | None:
        """Return the flow at an index with the number of further runs that it needs, or None."""
        flow, expected = self.flows[place], self.expected[place]
        if expected is None or flow.id in self.once:
            return None
        times = self.sampling.further_runs(flow, expected, observed, differs=bool(differing))
        if flow.id in self.together and not differing and not self._shows_enough(flow, expected, observed):
            left = self.sampling.first_runs(flow, expected) - observed.runs
            times = max(times, min(left, self._runs_shared(flow, expected)))
        unexpected = any(different.path is not None for different in differing)
        if self.traced and flow.id not in self.briefly and not (unexpected and is_settled(observed)):
            # An expected path that is never seen is a difference only after the runs that should show it.
            times = max(times, self.sampling.first_runs(flow, expected) - observed.runs)
        if not times:
            return None
        filled = None if observed.lists else expected.filled
        again = Repeated(flow, times, observed.lists or expected.lists, filled=filled)
        return self._with_ports(again, expected)

    def remembered(self, result: FlowResult, *, done: bool) -> FlowResult:
        """Return the part of a result that is needed later; ``done``: the flow does not run again."""
        return replace(result, branches=()) if done and not self.kept else result

    def _with_ports(self, request: Repeated, expected: FlowResult | None) -> Repeated:
        """Return the request with the source ports that no rule distinguishes from the flow's."""
        port = request.flow.first.packet.sport
        if self.port_boundaries is None or not isinstance(port, int):
            return request
        if request.times == 1 or request.lists or expected is None or expected.dependent:
            return request
        return replace(request, ports=ports_alike(port, self.port_boundaries))

    def _runs_shared(self, flow: Flow, expected: FlowResult) -> int:
        return self.sampling.shared_runs(flow, expected, self.together[flow.id])

    def _shows_enough(self, flow: Flow, expected: FlowResult, observed: FlowResult) -> bool:
        shown = paths_shown(flow, expected, observed)
        return all(
            place in shown for place in range(len(expected.branches)) if self.together[flow.id].needs(place)
        )


def _run(backend: Backend, job: Job, runs: _Runs, progress: Progress, stop: threading.Event) -> Replayed:
    results: list[FlowResult] = []
    differing: list[tuple[DifferentPath, ...]] = []
    limits: tuple[Note, ...] = ()
    total = len(runs.flows)
    if stop.is_set():
        return Replayed(backend=backend.name)
    progress(backend.name, 0, total)
    try:
        with backend.open(job) as session:
            limits = session.limits
            again: dict[int, Repeated] = {}
            for place, result in enumerate(_answers(backend, session, runs.flows, runs.first())):
                result = runs.decided(place, result)
                differing.append(runs.differing(place, result))
                if repeated := runs.again(place, result, differing[place]):
                    again[place] = repeated
                results.append(runs.remembered(result, done=not repeated and not differing[place]))
                progress(backend.name, len(results), total)
                if stop.is_set():
                    return Replayed(backend=backend.name)
            while again:
                flows = [repeated.flow for repeated in again.values()]
                answers = _answers(backend, session, flows, again.values())
                more: dict[int, Repeated] = {}
                for place, result in zip(again, answers, strict=True):
                    result = results[place].joined(runs.decided(place, result))
                    differing[place] = runs.differing(place, result)
                    if repeated := runs.again(place, result, differing[place]):
                        more[place] = repeated
                    results[place] = runs.remembered(result, done=not repeated and not differing[place])
                    if stop.is_set():
                        return Replayed(backend=backend.name)
                again = more
    except UnsupportedError as e:
        return Replayed(backend=backend.name, refusal=e)
    return Replayed(backend=backend.name, results=tuple(results), differing=tuple(differing), limits=limits)


def _answers(
    backend: Backend, session: Session, flows: Sequence[Flow], requests: Iterable[Flow | Repeated]
) -> Iterator[FlowResult]:
    """Yield the results for some flows, each checked to belong to its flow."""
    answers = iter(session.replay(requests))
    for flow in flows:
        result = next(answers, None)
        if result is None or result.flow_id != flow.id:
            received = "nothing" if result is None else repr(result.flow_id)
            raise MachineError(f"{backend.name}: expected the result of flow {flow.id!r}, got {received}")
        yield result
