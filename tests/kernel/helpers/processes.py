"""Child processes that a command leaves behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of processes that a command leaves behind, to be able to wait for them."""
    assert not ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def wait_for(pids: list[int]) -> None:
    """Wait for processes to end, and kill those that do not end within a minute."""
    deadline = time.monotonic() + 60
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(pid, os.WNOHANG) == (0, 0):
                if time.monotonic() > deadline:
                    os.kill(pid, signal.SIGKILL)
                time.sleep(0.005)


def children_of(parent: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                after = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(after[1]) == parent:
                    yield int(entry.name)
