"""A process that rolls back unless somebody confirms in time, and at once when the one who applies is killed.

It has a session of its own and nothing open but the end of a pipe that the applying process alone can
write to, so that neither the end of the operator's ssh nor a kill of the command takes it along.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable
from typing import Final, Self

from translate.errors import MachineError

__all__ = ["DeadMan", "now"]

_READY: Final = b"r"
_APPLIED: Final = b"a"
_LOOK_SECONDS: Final = 0.2


def now() -> float:
    """Return the seconds since boot, those asleep too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class DeadMan:
    """Arms the timer. ``over`` says whether there is nothing left to watch; ``roll_back`` does that.

    Both run in the other process; what ``roll_back`` raises is lost there, so it has to keep it. It is out of
    reach of the terminal's signals when this returns. Raises MachineError when it cannot be armed.
    """

    def __init__(self, deadline: float, over: Callable[[], bool], roll_back: Callable[[str], None]) -> None:
        reads, self._writes = os.pipe()
        waits, says = os.pipe()
        parent = os.getpid()
        if not os.fork():
            _serve(reads, says, parent, deadline, over, roll_back)
        os.close(reads)
        os.close(says)
        ready = os.read(waits, 1) == _READY
        os.close(waits)
        if not ready:
            self.close()
            raise MachineError("the dead-man timer cannot be armed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def applied(self) -> None:
        """Say that all is applied: from here on only time counts."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._writes, _APPLIED)
        self.close()

    def close(self) -> None:
        """Hang up. Before :meth:`applied` that has it roll back what is still there."""
        if self._writes >= 0:
            os.close(self._writes)
            self._writes = -1


def _serve(
    pipe: int,
    says: int,
    parent: int,
    deadline: float,
    over: Callable[[], bool],
    roll_back: Callable[[str], None],
) -> None:
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        _close_all_but(pipe, says)
        os.write(says, _READY)
        os.close(says)
        why = _wait_for_parent(pipe, parent, deadline)
        while why is None:
            if over():
                os._exit(0)
            if now() >= deadline:
                why = "nobody has confirmed in time"
            else:
                time.sleep(_LOOK_SECONDS)
        if not over():
            roll_back(why)
    finally:
        with contextlib.suppress(BaseException):
            os._exit(0)


def _close_all_but(*kept: int) -> None:
    """Let go of locks, and of the terminal: an ssh session ends only when nobody holds its pipes."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in (0, 1, 2, *kept):
            with contextlib.suppress(OSError):
                os.close(int(name))


def _wait_for_parent(pipe: int, parent: int, deadline: float) -> str | None:
    """Return why to roll back already, None when all is applied."""
    while now() < deadline:
        readable, _, _ = select.select([pipe], [], [], min(_LOOK_SECONDS, max(0.0, deadline - now())))
        if readable:
            return None if os.read(pipe, 1) == _APPLIED else "the command that applied has ended too early"
    # The pipe is still open, so the parent lives, and is not somebody else with its number.
    os.kill(parent, signal.SIGKILL)
    return "the command that applied has not come to its end in time"
