"""The guard undoes what is not committed, whichever way its process ends."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from backends.kernel.tc_ebpf.installed.guard import Guard
from translate.errors import MachineError


def test_nothing_is_undone_that_was_committed(tmp_path: Path) -> None:
    with Guard((tmp_path / "undone").touch) as guard:
        guard.commit()
    assert not (tmp_path / "undone").exists()


def test_what_fails_is_undone(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="as it goes"), Guard((tmp_path / "undone").touch):
        raise ValueError("as it goes")
    assert (tmp_path / "undone").exists()


def test_what_is_killed_is_undone(tmp_path: Path) -> None:
    pid = os.fork()
    if not pid:
        with Guard((tmp_path / "undone").touch):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    deadline = time.monotonic() + 20
    while not (tmp_path / "undone").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_could_not_be_undone_is_said() -> None:
    def undo() -> None:
        raise MachineError("no")

    with pytest.raises(MachineError, match="could not be undone"), Guard(undo):
        pass
