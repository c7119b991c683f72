"""Every step of a migration, written down before it is begun and after it is done.

What to do after a crash is decided by looking at the kernel, because a step may have happened or not
between its two lines; the journal tells people how far it came, and when. Where somebody else's rules
stand in a table it also tells whether the table was emptied before, as far as it is whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from nfparity.persistent_state.reservedlog import ReservedLog
from translate.errors import MachineError

__all__ = ["Hook", "Journal", "Steps", "read_steps"]

Hook = Callable[[str], None]
"""Told of each point between two steps, for tests: ``begun STEP``, ``made STEP``, ``done STEP``."""

_NOTHING: Final[Hook] = lambda point: None  # noqa: E731
_ROOM: Final = 8192
"""Bytes: two pages. Two families, there and back, write at most 64 lines of 72 bytes."""


class Journal:
    """Appends to a log, whose space is taken at the beginning.

    Every line is on disk before the next thing happens. On the way back, after :meth:`turn_back`, a line that
    cannot be written is left out, and ``complaint`` says why.
    """

    def __init__(self, log: ReservedLog, hook: Hook = _NOTHING) -> None:
        self._log = log
        self._hook = hook
        self._back = False
        self.complaint: str | None = None

    def begin_anew(self) -> None:
        """Forget what an earlier migration has written. Raises MachineError."""
        self._log.begin(_ROOM)
        self._back = False

    def turn_back(self) -> None:
        """From here on nothing is given up because it cannot be written down."""
        self._back = True
        self.complaint = None

    def step(self, name: str, action: Callable[[], None]) -> None:
        """Do something between its two lines. Raises what it raises, and MachineError."""
        self._add("begin", name)
        self._hook(f"begun {name}")
        action()
        self._hook(f"made {name}")
        self._add("done", name)
        self._hook(f"done {name}")

    def steps(self) -> Steps:
        """Return what it holds."""
        return read_steps(self._log)

    def _add(self, what: str, name: str) -> None:
        line = json.dumps({"at": datetime.now(UTC).isoformat(timespec="milliseconds"), what: name})
        try:
            self._log.add(line)
        except MachineError as e:
            if not self._back:
                raise
            self.complaint = str(e)


@dataclass(frozen=True, slots=True)
class Steps:
    """The lines of a journal, as ``begin STEP`` and ``done STEP``.

    ``whole``: every line could be read, and there are some, so that what is not there did not happen (but for
    what was done while lines could not be written).
    """

    lines: tuple[str, ...]
    whole: bool

    def __contains__(self, line: str) -> bool:
        return line in self.lines


def read_steps(log: ReservedLog) -> Steps:
    """Return what a journal holds; what cannot be read of it is left out."""
    try:
        lines = log.lines()
    except MachineError:
        return Steps((), whole=False)
    found: list[str] = []
    whole = bool(lines)
    for line in lines:
        try:
            one = json.loads(line)
            if not isinstance(one, dict):
                raise ValueError("it is no object")
            found += [f"{what} {one[what]}" for what in ("begin", "done") if what in one]
        except (ValueError, RecursionError):
            whole = False
    return Steps(tuple(found), whole)
