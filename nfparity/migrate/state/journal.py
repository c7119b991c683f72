"""Journal of a migration: a line before each step and a line after it.

After a crash the state of the kernel decides what to do, because the journal cannot show whether a step
happened after its first line. The journal is mainly for people. But if another program has written rules into
a table, a complete journal also shows whether the migration had emptied the table before.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from nfparity.persistent_state.reservedlog import ReservedLog
from translate.dataclass import dataclass
from translate.errors import MachineError

__all__ = ["Hook", "Journal", "Steps", "read_steps"]

Hook = Callable[[str], None]
"""Hook for tests, called between steps with ``begun STEP``, ``made STEP`` or ``done STEP``."""

_NOTHING: Final[Hook] = lambda point: None  # noqa: E731
_ROOM: Final = 8192
"""The reserved size in bytes: apply and rollback of two families write at most 64 lines of 72 bytes."""


class Journal:
    """Appends to a log with reserved space.

    Every line is on disk before the next step. During a rollback, after :meth:`turn_back`, a line that cannot
    be written is left out, and ``complaint`` is the reason.
    """

    def __init__(self, log: ReservedLog, hook: Hook = _NOTHING) -> None:
        self._log = log
        self._hook = hook
        self._back = False
        self.complaint: str | None = None

    def begin_anew(self) -> None:
        """Clear the lines of an earlier migration. Raises MachineError."""
        self._log.begin(_ROOM)
        self._back = False

    def turn_back(self) -> None:
        """Begin the rollback: from now on a line that cannot be written is not an error."""
        self._back = True
        self.complaint = None

    def step(self, name: str, action: Callable[[], None]) -> None:
        """Run a step between its two lines. Raises the step's exceptions, and MachineError."""
        self._add("begin", name)
        self._hook(f"begun {name}")
        action()
        self._hook(f"made {name}")
        self._add("done", name)
        self._hook(f"done {name}")

    def steps(self) -> Steps:
        """Return the lines of the journal."""
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

    ``whole``: there are lines, and all of them are readable, so a step without a line did not happen (except
    for steps during which the journal could not be written).
    """

    lines: tuple[str, ...]
    whole: bool

    def __contains__(self, line: str) -> bool:
        return line in self.lines


def read_steps(log: ReservedLog) -> Steps:
    """Return the lines of a journal; unreadable ones are left out."""
    try:
        lines = log.lines()
    except MachineError:
        return Steps((), whole=False)
    steps: list[str] = []
    whole = bool(lines)
    for line in lines:
        try:
            entry = json.loads(line)
            if not isinstance(entry, dict):
                raise ValueError("it is not an object")
            steps += [f"{what} {entry[what]}" for what in ("begin", "done") if what in entry]
        except (ValueError, RecursionError):
            whole = False
    return Steps(tuple(steps), whole)
