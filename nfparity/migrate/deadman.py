"""The dead-man timer: a process that rolls back unless confirmed in time, or if apply is killed.

It has its own session, and only one end of a pipe open that the applying process alone can write to. So
neither the end of the operator's ssh session nor a kill of the command ends it. It keeps the old rules in
memory, and retries the rollback until it succeeds.
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
    """Starts the timer. ``over`` returns True if nothing is left to watch; ``roll_back`` gets the reason.

    Both run in the other process; ``roll_back`` is repeated until it returns True. Signals of the terminal
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
            why = "nobody has confirmed in time"
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
            return None if os.read(pipe, 1) == _APPLIED else "the command that applied has ended too early"
    # The pipe is still open, so the parent lives, and is not somebody else with its number.
    os.kill(parent, signal.SIGKILL)
    return "the command that applied has not come to its end in time"
