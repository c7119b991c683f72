"""Child processes that hold one session after the other, each in a network namespace of its own.

A run of many cases ends a session every few milliseconds and begins another. A process that has held one
begins faster than a new one: it is not forked, has its own copies of the pages that it writes to, and its
loaders may keep something that does not depend on rules and nodes. It is used again only if its last session
has closed everything that it opened.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from backends.replay.forkserver import inherited
from backends.replay.served import Server
from backends.replay.worker import Worker, WorkerEndedError
from translate.errors import MachineError

__all__ = ["lent_worker", "workers_kept"]

_idle: Final[defaultdict[object, list[Worker]]] = defaultdict(list)
_users = 0
"""The number of contexts in which workers are kept."""
_lock = threading.Lock()


@contextmanager
def workers_kept() -> Iterator[None]:
    """Let sessions use the processes of earlier ones, in all threads, until the context ends."""
    global _users
    with _lock:
        _users += 1
    try:
        yield
    finally:
        ended: list[Worker] = []
        with _lock:
            _users -= 1
            if not _users:
                ended = [worker for workers in _idle.values() for worker in workers]
                _idle.clear()
        for worker in ended:
            worker.close()


@contextmanager
def lent_worker(kind: str | None, start: Callable[[], Server]) -> Iterator[Worker]:
    """Yield a worker whose server ``start`` has made; the server ends with the context.

    While workers are kept, it may be one that has had servers of the same ``kind``; None is never kept.
    Raises the errors of :class:`~backends.replay.worker.Worker`.
    """
    if kind is None or not _users:
        with Worker(start) as worker:
            yield worker
        return
    key = kind, _surroundings()
    worker = _begun(key, start)
    with ExitStack() as stack:
        stack.push(worker)
        yield worker
        ready = False
        with contextlib.suppress(MachineError):  # its results are there already
            ready = worker.finish()
        with _lock:
            if ready and _users:
                _idle[key].append(worker)
                stack.pop_all()


def _begun(key: object, start: Callable[[], Server]) -> Worker:
    while (worker := _taken(key)) is not None:
        try:
            worker.begin(start)
        except WorkerEndedError:
            continue  # it was killed meanwhile
        except BaseException:
            worker.kill()
            raise
        return worker
    return Worker(start)


def _taken(key: object) -> Worker | None:
    with _lock:
        workers = _idle[key]
        return workers.pop() if workers else None


def _surroundings() -> object:
    """Return what a child takes over from this process; a process with other surroundings is not used."""
    directory, errors = os.stat("."), os.fstat(2)
    places = (directory.st_dev, directory.st_ino), (errors.st_dev, errors.st_ino)
    return inherited(), places, frozenset(os.environb.items())


def _forget_all() -> None:
    global _users, _lock
    _users, _lock = 0, threading.Lock()
    _idle.clear()


os.register_at_fork(after_in_child=_forget_all)
