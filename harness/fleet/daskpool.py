"""Workers of dask.distributed: processes of this machine, or those of a scheduler that runs already.

Each worker takes one snapshot at a time. Half of the work is the simulator's, in pure Python, so that
processes are what helps; and the replay of a snapshot has network namespaces of its own, in children of the
worker that end with it. A worker that dies is started anew (by its nanny), and what it had is given to
another; whatever ends several workers is given up.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

from harness.fleet.node import Answer, Failure
from harness.fleet.order import Order, answer
from translate.errors import InputError, MachineError

if TYPE_CHECKING:
    from harness.fleet.pool import Pool

__all__ = ["DaskPool", "dask_pool"]

_DEATHS: Final = 3
"""How many workers a snapshot may end before it is given up; distributed's own default, said here."""

_SECONDS: Final = 30


def _same(order: Order) -> Order:
    return order


class DaskPool:
    """A :class:`harness.fleet.pool.Pool`. ``client`` is a ``distributed.Client``."""

    def __init__(self, client: Any, order: Order) -> None:
        self._client = client
        # A task is computed again when the worker that has its result is lost; scattered data would be gone.
        self._order = client.submit(_same, order, pure=False)

    def answers(self, paths: Sequence[str]) -> Iterator[Answer]:
        """Yield an answer for each path as it comes."""
        from distributed import KilledWorker, as_completed

        futures = {
            self._client.submit(answer, self._order, os.path.abspath(path), pure=False): path
            for path in paths
        }
        for future in as_completed(futures):
            path = futures.pop(future)
            try:
                got = future.result()
                yield Answer(
                    path=path,
                    found=got.found,
                    titles=got.titles,
                    flows=got.flows,
                    failure=_renamed(got, path),
                )
            except KilledWorker:
                ended = f"given up: it has ended {_DEATHS + 1} workers (of too little memory?)"
                yield Answer(path=path, failure=Failure(3, ended))
            except Exception as e:
                # Not the snapshot's: that is an answer. Pickle's, the scheduler's, another version there.
                yield Answer(path=path, failure=Failure(3, f"{type(e).__name__}: {e}", again=True))
            finally:
                future.release()


def _renamed(got: Answer, path: str) -> Failure | None:
    """A failure that calls the snapshot as the user did, and not by where it lies."""
    if got.failure is None:
        return None
    reason = got.failure.reason.replace(got.path, path)
    return Failure(got.failure.status, reason, got.failure.again)


@contextmanager
def dask_pool(order: Order, *, workers: int | None, scheduler: str | None) -> Iterator[Pool]:
    """Yield a pool: of ``workers`` processes here, or of the workers that ``scheduler`` has.

    None for both: a process for each processor. Raises InputError for an address that is none, and
    MachineError when nobody answers there.
    """
    import dask
    from distributed import Client, LocalCluster

    settings = {"distributed.scheduler.allowed-failures": _DEATHS}
    with dask.config.set(settings), ExitStack() as stack:
        if scheduler is None:
            count = workers or len(os.sched_getaffinity(0))
            cluster = LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            )
            stack.enter_context(cluster)
            client = Client(cluster)
        else:
            client = _connected(scheduler, Client)
        stack.enter_context(client)
        yield DaskPool(client, order)


def _connected(scheduler: str, client: Any) -> Any:
    try:
        return client(scheduler, timeout=_SECONDS)
    except ValueError as e:
        raise InputError(f"--scheduler {scheduler}: {e}") from e
    except OSError as e:
        raise MachineError(f"--scheduler {scheduler}: nobody answers there: {e}") from e
