"""A process that rolls back unless somebody confirms in time, and at once when the one who applies is killed.

It has a session of its own and nothing open but the end of a pipe that the applying process alone can
write to, so that neither the end of the operator's ssh nor a kill of the command takes it along. It has in
memory what it needs to roll back, and tries again until it has.
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
    """Return the seconds since boot, those asleep too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class DeadMan:
    """Arms the timer. ``over`` says whether there is nothing left to watch; ``roll_back`` is told why.

    Both run in the other process, and the second again and again until it returns True. The timer is out of
    reach of the terminal's signals when this returns. Raises MachineError when it cannot be armed.
    """

    def __init__(self, deadline: float, over: Callable[[], bool], roll_back: Callable[[str], bool]) -> None:
        parent = os.getpid()
        self._watcher = Watcher(lambda pipe: _serve(pipe, parent, deadline, over, roll_back), alone=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._watcher.close()

    def applied(self) -> None:
        """Say that all is applied: from here on only time counts. Otherwise it rolls back when this ends.

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
    """Return why to roll back already, None when all is applied."""
    while now() < deadline:
        readable, _, _ = select.select([pipe], [], [], min(_LOOK_SECONDS, max(0.0, deadline - now())))
        if readable:
            return None if os.read(pipe, 1) == _APPLIED else "the command that applied has ended too early"
    # The pipe is still open, so the parent lives, and is not somebody else with its number.
    os.kill(parent, signal.SIGKILL)
    return "the command that applied has not come to its end in time"
