"""Runs flows through several backends, each in its own session, and keeps what came out.

Kernel backends work in child processes of their own, so threads are enough to run them side by
side. Whatever ends the replay (an error, Ctrl-C) closes every session before it goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from backends.contract import Backend, Job
from backends.flow import Flow
from backends.kernel.worker import end_workers
from backends.outcome import FlowResult
from translate.errors import MachineError, Note, UnsupportedError

__all__ = ["Progress", "Replayed", "replay"]

Progress = Callable[[str, int, int], None]
"""Told now and then: the backend's name, flows done, flows in all. Called from several threads."""

_WORKERS = 2
_PATIENCE = 5.0
"""Seconds to let backends end properly when the replay has failed, or was interrupted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What one backend did: one result per flow in order, or why it refused the rules.

    ``limits`` is what the backend says of itself (:attr:`Session.limits`).
    """

    backend: str
    results: tuple[FlowResult, ...] = ()
    refusal: UnsupportedError | None = None
    limits: tuple[Note, ...] = ()


def _quiet(backend: str, done: int, total: int) -> None:
    """Report nothing."""


def replay(
    backends: Sequence[Backend],
    job: Job,
    flows: Sequence[Flow],
    *,
    progress: Progress = _quiet,
) -> tuple[Replayed, ...]:
    """Run all flows through all backends and return what each did, in the order of ``backends``.

    A backend that cannot express the rules is an answer, not an error. Raises MachineError when
    the machine fails one, after every session has been closed; also when a backend returns
    results for other flows than it was given.
    """
    stop = threading.Event()
    pool = ThreadPoolExecutor(max_workers=_WORKERS, thread_name_prefix="replay")
    try:
        futures = [pool.submit(_run, b, job, flows, progress, stop) for b in backends]
        try:
            _wait(futures)
        except BaseException:
            # Sessions are generators and contexts: a thread that sees the flag leaves them properly. One that
            # waits for a child which does not come back sees nothing.
            stop.set()
            if wait(futures, timeout=_PATIENCE).not_done:
                end_workers()
            raise
        return tuple(f.result() for f in futures)
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _wait(futures: Sequence[Future[Replayed]]) -> None:
    # Waiting without a timeout would keep Ctrl-C from being seen on some platforms.
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=0.5, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()


def _run(
    backend: Backend, job: Job, flows: Sequence[Flow], progress: Progress, stop: threading.Event
) -> Replayed:
    results: list[FlowResult] = []
    limits: tuple[Note, ...] = ()
    if stop.is_set():
        return Replayed(backend=backend.name)
    progress(backend.name, 0, len(flows))
    try:
        with backend.open(job) as session:
            limits = session.limits
            answers = iter(session.replay(flows))
            for flow in flows:
                result = next(answers, None)
                if result is None or result.flow_id != flow.id:
                    got = "nothing" if result is None else repr(result.flow_id)
                    raise MachineError(f"{backend.name}: flow {flow.id!r} was answered by {got}")
                results.append(result)
                progress(backend.name, len(results), len(flows))
                if stop.is_set():
                    break
    except UnsupportedError as e:
        return Replayed(backend=backend.name, refusal=e)
    return Replayed(backend=backend.name, results=tuple(results), limits=limits)
