"""Workers of dask.distributed: processes of this machine, or those of a running scheduler.

Each worker takes one snapshot at a time. Half of the work is the simulator's, in pure Python, so processes
are used instead of threads. The replay of a snapshot has its own network namespaces, in child processes that
end with the worker. A nanny restarts a worker that dies, and another worker takes its snapshot. A snapshot
that kills several workers is given up, and retried once after all others.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from nfparity.assess.fleet.job import answer
from nfparity.assess.fleet.node import Answer, Failure
from nfparity.assess.snapshots import AssessOptions
from translate.errors import InputError, MachineError

if TYPE_CHECKING:
    from nfparity.assess.fleet.pool import Pool

__all__ = ["Ask", "DaskPool", "dask_pool"]

_DEATHS: Final = 2
"""The number of workers that may die while they assess a snapshot, before it is set aside for a retry."""

_SECONDS: Final = 30
_LOOPBACK: Final = "127.0.0.1"
_SCHEMES: Final = ("tcp", "tls")

Ask = Callable[[AssessOptions, str], Answer]
"""A function like :func:`nfparity.assess.fleet.job.answer` that the workers can import."""


def _same(options: AssessOptions) -> AssessOptions:
    return options


class DaskPool:
    """A :class:`nfparity.assess.fleet.pool.Pool`. ``client`` is a ``distributed.Client``."""

    def __init__(self, client: Any, options: AssessOptions, ask: Ask) -> None:
        self._client = client
        self._ask = ask
        # dask repeats a task when the worker with its result is lost; scattered data would be lost.
        self._options = client.submit(_same, options, pure=False)

    def answers(self, paths: Sequence[str]) -> Iterator[Answer]:
        """Yield an answer for each path, in order of completion."""
        from distributed import CancelledError, KilledWorker, as_completed

        futures = {
            self._client.submit(self._ask, self._options, os.path.abspath(path), pure=False): path
            for path in paths
        }
        for future in as_completed(futures):
            path = futures.pop(future)
            try:
                answer = future.result()
                yield Answer(
                    path=path,
                    differences=answer.differences,
                    titles=answer.titles,
                    flows=answer.flows,
                    failure=_renamed(answer, path),
                )
            except CancelledError as e:
                raise MachineError(f"the scheduler is gone, or lost its tasks: {e}") from e
            except KilledWorker:
                ended = f"given up: {_DEATHS + 1} workers have died while assessing it (out of memory?)"
                yield Answer(path=path, failure=Failure(3, ended, again=True))
            except Exception as e:
                # Not an error of the snapshot, but pickle's, the scheduler's or a version mismatch.
                yield Answer(path=path, failure=Failure(3, f"{type(e).__name__}: {e}", again=True))
            finally:
                future.release()


def _renamed(answer: Answer, path: str) -> Failure | None:
    """Return the failure with the path that the user gave."""
    if answer.failure is None:
        return None
    reason = answer.failure.reason.replace(answer.path, path)
    return Failure(answer.failure.status, reason, answer.failure.again)


@contextmanager
def dask_pool(
    options: AssessOptions, *, workers: int | None, scheduler: str | None, ask: Ask = answer
) -> Iterator[Pool]:
    """Yield a pool of ``workers`` local processes, or of the workers of ``scheduler``.

    The default is one process per processor. ``ask`` is the function that a worker runs for a path.
    Raises InputError for an invalid address, and MachineError when no scheduler answers there, or when ``lo``
    is down.
    """
    import dask
    from distributed import Client, LocalCluster

    # Otherwise dask leaves its folder, and the folders of killed workers.
    scratch = TemporaryDirectory(prefix="nfparity-fleet-", ignore_cleanup_errors=True)
    settings = {
        "temporary-directory": scratch.name,
        "distributed.scheduler.allowed-failures": _DEATHS,
        # No snapshot waits at a busy worker: if the worker died, dask would also count its death for the
        # waiting snapshot.
        "distributed.scheduler.worker-saturation": 1.0,
    }
    with scratch, dask.config.set(settings), ExitStack() as stack:
        if scheduler is None:
            _check_loopback()
            count = workers or len(os.sched_getaffinity(0))
            cluster = LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                host=_LOOPBACK,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            )
            stack.enter_context(cluster)
            client = Client(cluster)
        else:
            client = _connected(scheduler, Client)
        stack.enter_context(client)
        yield DaskPool(client, options, ask)


def _check_loopback() -> None:
    """Raise MachineError if processes of this machine cannot connect to each other: ``lo`` is down."""
    try:
        with socket.create_server((_LOOPBACK, 0)) as server:
            socket.create_connection(server.getsockname(), timeout=_SECONDS).close()
    except OSError as e:
        reason = f"the workers cannot connect to {_LOOPBACK}: {e.strerror or e}"
        raise MachineError(f"{reason}; is lo down? (ip link set lo up)") from e


def _connected(scheduler: str, client: Any) -> Any:
    # First connect without dask: the garbage collection of a Client that failed to connect may deadlock on a
    # lock of its own thread (distributed 2026.8).
    parts = urlsplit(scheduler)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if parts.scheme not in _SCHEMES or not host or port is None:
        raise InputError(f"--scheduler {scheduler}: not an address such as tcp://host:8786")
    try:
        socket.create_connection((host, port), timeout=_SECONDS).close()
        connected = client(scheduler, timeout=_SECONDS)
    except OSError as e:
        raise MachineError(f"--scheduler {scheduler}: no scheduler answers there: {e}") from e
    try:
        connected.wait_for_workers(1, timeout=_SECONDS)
    except TimeoutError as e:
        connected.close()
        raise MachineError(f"--scheduler {scheduler}: it has no worker (dask worker {scheduler})") from e
    return connected
