"""The dead-man timer: a process that rolls back unless confirmed in time, or if apply is killed.

It runs in its own session, with only the read end of a pipe open, to which only the applying process can
write. So it survives the end of the operator's ssh session and a kill of the command. It keeps the old rules
in memory, and retries the rollback until it succeeds.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from typing import Final, Self

from nfparity.persistent_state.guard import Watcher

__all__ = ["DeadMan", "now"]

_APPLIED: Final = b"a"
_LOOK_SECONDS: Final = 0.2
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0


def now() -> float:
    """Return the seconds since boot, including sleep."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class DeadMan:
    """The timer. ``over`` returns True if nothing is left to watch; ``roll_back`` receives the reason.

    Both run in the timer's process; ``roll_back`` is repeated until it returns True. Signals of the terminal
    do not reach the timer. Raises MachineError if it cannot be started.
    """

    def __init__(self, deadline: float, over: Callable[[], bool], roll_back: Callable[[str], bool]) -> None:
        parent = os.getpid()
        self._watcher = Watcher(lambda pipe: _serve(pipe, parent, deadline, over, roll_back), alone=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._watcher.close()

    def applied(self) -> None:
        """Report that the plan is applied: from now on only the time limit counts.

        Raises MachineError when the timer was killed.
        """
        self._watcher.say(_APPLIED)


def _serve(
    pipe: int, parent: int, deadline: float, over: Callable[[], bool], roll_back: Callable[[str], bool]
) -> int:
    why = _wait_for_parent(pipe, parent, deadline)
    while why is None:
        if over():
            return 0
        if now() >= deadline:
            why = "it was not confirmed in time"
        else:
            time.sleep(_LOOK_SECONDS)
    pause = _FIRST_PAUSE
    while not over() and not roll_back(why):
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
    return 0


def _wait_for_parent(pipe: int, parent: int, deadline: float) -> str | None:
    """Return the reason to roll back now, or None if the plan is applied."""
    while now() < deadline:
        readable, _, _ = select.select([pipe], [], [], min(_LOOK_SECONDS, max(0.0, deadline - now())))
        if readable:
            return None if os.read(pipe, 1) == _APPLIED else "nfparity migrate apply was killed or has failed"
    # The pipe is still open, so the parent is alive, and its PID does not belong to another process.
    os.kill(parent, signal.SIGKILL)
    return "nfparity migrate apply did not finish in time"
