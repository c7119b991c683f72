"""Signals: they end programs that only read, never programs that create or remove something."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from types import FrameType, TracebackType
from typing import Any, Sequence

__all__ = ["Done", "Interruption", "SignalError"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class SignalError(Exception):
    """A signal has arrived."""


class Done:
    """A program that has ended."""

    def __init__(self, status: int, out: bytes, err: str) -> None:
        self.status = status
        self.out = out
        self.err = err


class Interruption:
    """Notes signals within its context.

    A signal ends the program that runs, if it may be interrupted, and every wait. Nothing else happens at
    that moment: the caller looks at its own points with :meth:`check`, so that no signal falls between the
    creation of an object and the note of it.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        for number in _SIGNALS:
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._read)
        os.close(self._write)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.number is None:
            self.number = number
            os.write(self._write, b"!")
        if self._child is not None:
            self._child.terminate()

    def check(self) -> None:
        """Raise SignalError if a signal has arrived."""
        if self.number is not None:
            raise SignalError

    def wait(self, seconds: float, *, interruptible: bool = True) -> None:
        """Wait, or raise SignalError at a signal."""
        select.select([self._read] if interruptible else [], [], [], seconds)
        if interruptible:
            self.check()

    def run(
        self, words: Sequence[str], data: bytes = b"", *, interruptible: bool, shown: bool = False
    ) -> Done:
        """Run a program and return its output. With ``shown``, the program uses the caller's terminal and
        output.

        A program that is not ``interruptible`` has its own session: signals of a terminal do not reach it.
        Blocking the signals is not enough, because programs in Go unblock them. A signal that comes before
        the new process has its session ends it before it is the program, and so it is started again.
        """
        if interruptible:
            self.check()
        done = self._run_once(words, data, interruptible, shown)
        while not interruptible and -done.status in _SIGNALS:
            done = self._run_once(words, data, interruptible, shown)
        if interruptible:
            self.check()
        return done

    def _run_once(self, words: Sequence[str], data: bytes, interruptible: bool, shown: bool) -> Done:
        streams: dict[str, Any] = {} if shown else {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        child = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL if shown else subprocess.PIPE,
            start_new_session=not interruptible,
            **streams,
        )
        if interruptible:
            self._child = child
            if self.number is not None:
                child.terminate()
        try:
            out, err = child.communicate(None if shown else data)
        finally:
            self._child = None
        return Done(child.returncode, out or b"", (err or b"").decode("utf-8", "replace").strip())
