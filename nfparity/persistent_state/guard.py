"""Guard process, which undoes the changes of a process that ends before it commits."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from typing import Final, Self

from translate.errors import MachineError, NfparityError

__all__ = ["Guard", "Watcher"]

_READY: Final = b"r"
_DONE: Final = b"d"


class Watcher:
    """A forked process in its own session, with the read end of a pipe to which only its parent writes.

    ``serve`` runs there with the read end and returns the exit status. When the constructor returns, signals
    of the terminal no longer reach it. With ``alone`` it closes all other descriptors that it has inherited,
    such as locks and the terminal, because an ssh session ends only when its pipes are closed. Raises
    MachineError if it does not start.
    """

    def __init__(self, serve: Callable[[int], int], *, alone: bool) -> None:
        reads, self._writes = os.pipe()
        waits, says = os.pipe()
        try:
            self._pid = os.fork()
        except OSError as e:
            for descriptor in (reads, self._writes, waits, says):
                os.close(descriptor)
            raise MachineError(f"cannot start another process: {e.strerror}") from e
        if not self._pid:
            _run(serve, reads, says, self._writes, alone=alone)
        os.close(reads)
        os.close(says)
        ready = os.read(waits, 1) == _READY
        os.close(waits)
        if not ready:
            self.close()
            raise MachineError("the process that undoes failed changes did not start")

    def say(self, word: bytes) -> None:
        """Write to the other end. Raises MachineError if the process there has ended."""
        try:
            os.write(self._writes, word)
        except BrokenPipeError as e:
            raise MachineError("the process that undoes failed changes was killed") from e

    def close(self) -> None:
        """Close the pipe; the other end reads the end of file."""
        if self._writes >= 0:
            os.close(self._writes)
            self._writes = -1

    def wait(self) -> int:
        """Return the exit status, in the form of ``waitpid``."""
        return os.waitpid(self._pid, 0)[1]


class Guard:
    """A context manager that runs ``undo`` in another process unless :meth:`commit` is called.

    It does so even after SIGKILL. The descriptors of this process, including locks, stay open until the guard
    has finished. ``again`` tells the user how to try again by hand.
    """

    def __init__(self, undo: Callable[[], None], again: str) -> None:
        def serve(pipe: int) -> int:
            try:
                if os.read(pipe, 1) != _DONE:
                    undo()
            except (NfparityError, OSError):
                return 1
            return 0

        self._again = again
        self._watcher = Watcher(serve, alone=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exception: type[BaseException] | None, *_: object) -> None:
        """Release the guard; MachineError if it could not undo, unless another exception propagates."""
        self._watcher.close()
        if self._watcher.wait() and exception is None:
            raise MachineError(f"the begun changes could not be undone; {self._again}")

    def commit(self) -> None:
        """Commit the changes: nothing will be undone."""
        self._watcher.say(_DONE)


def _run(serve: Callable[[int], int], pipe: int, says: int, writes: int, *, alone: bool) -> None:
    status = 1
    try:
        os.close(writes)
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        if alone:
            _close_all_but(pipe, says)
        os.write(says, _READY)
        os.close(says)
        status = serve(pipe)
    finally:
        with contextlib.suppress(BaseException):
            os._exit(status)


def _close_all_but(*kept: int) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in (0, 1, 2, *kept):
            with contextlib.suppress(OSError):
                os.close(int(name))
