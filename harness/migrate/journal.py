"""Every step of a migration, written down before it is begun and after it is done.

What to do after a crash is decided by looking at the kernel, because a step may have happened or not
between its two lines; the journal tells people how far it came, and when.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from harness.migrate.place import sync_folder
from translate.errors import MachineError

__all__ = ["Hook", "Journal", "read_journal"]

Hook = Callable[[str], None]
"""Told of each point between two steps, for tests: ``begun STEP``, ``made STEP``, ``done STEP``."""

_NOTHING: Final[Hook] = lambda point: None  # noqa: E731


class Journal:
    """Appends to a file; every line is on disk before the next thing happens."""

    def __init__(self, path: Path, hook: Hook = _NOTHING) -> None:
        self._path = path
        self._hook = hook

    def begin_anew(self) -> None:
        """Forget what an earlier migration has written. Raises MachineError."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path.unlink(missing_ok=True)
            sync_folder(self._path.parent)
        except OSError as e:
            raise MachineError(f"cannot write {self._path}: {e.strerror}") from e

    def step(self, name: str, action: Callable[[], None]) -> None:
        """Do something between its two lines. Raises what it raises, and MachineError."""
        self._append("begin", name)
        self._hook(f"begun {name}")
        action()
        self._hook(f"made {name}")
        self._append("done", name)
        self._hook(f"done {name}")

    def _append(self, what: str, name: str) -> None:
        line = json.dumps({"at": datetime.now(UTC).isoformat(timespec="milliseconds"), what: name})
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, f"{line}\n".encode())
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as e:
            raise MachineError(f"cannot write {self._path}: {e.strerror}") from e


def read_journal(path: Path) -> tuple[str, ...]:
    """Return the lines, as ``begin STEP`` and ``done STEP``; none where there is no journal.

    A line that a crash has cut is left out.
    """
    try:
        text = path.read_text()
    except FileNotFoundError:
        return ()
    except OSError as e:
        raise MachineError(f"cannot read {path}: {e.strerror}") from e
    found = []
    for line in text.splitlines():
        try:
            one = json.loads(line)
        except ValueError:
            continue
        found += [f"{what} {one[what]}" for what in ("begin", "done") if what in one]
    return tuple(found)
