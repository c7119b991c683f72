"""A process that undoes what another has begun, when that one ends without saying that it is done."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from typing import Self

from translate.errors import MachineError, NfparityError

__all__ = ["Guard"]

_DONE = b"d"


class Guard:
    """Runs ``undo`` in a process of its own unless :meth:`commit` is called, even after SIGKILL.

    It is forked, in a session of its own, and reads from a pipe that this process alone can write to. What
    this process has open, locks too, stays open until the guard is done.
    """

    def __init__(self, undo: Callable[[], None]) -> None:
        reads, writes = os.pipe()
        self._writes = writes
        self._pid: int = os.fork()
        if not self._pid:
            os.close(self._writes)
            _serve(reads, undo)
        os.close(reads)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Let the guard go; raises MachineError, if nothing else is being raised, when it could not undo."""
        if self._writes >= 0:
            os.close(self._writes)
            self._writes = -1
        status = os.waitpid(self._pid, 0)[1]
        if status and kind is None:
            raise MachineError("what was begun could not be undone; nfparity tc unload tries again")

    def commit(self) -> None:
        """Say that it is done: nothing is undone any more."""
        os.write(self._writes, _DONE)


def _serve(pipe: int, undo: Callable[[], None]) -> None:
    status = 1
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        if os.read(pipe, 1) != _DONE:
            undo()
        status = 0
    except (NfparityError, OSError):
        status = 1
    finally:
        with contextlib.suppress(BaseException):
            os._exit(status)
