"""The guard undoes what is not committed, whichever way its process ends."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from pathlib import Path

import pytest

from nfparity.persistent_state.guard import Guard, Watcher
from translate.errors import MachineError


def test_nothing_is_undone_that_was_committed(tmp_path: Path) -> None:
    with Guard((tmp_path / "undone").touch, "again") as guard:
        guard.commit()
    assert not (tmp_path / "undone").exists()


def test_what_fails_is_undone(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="as it goes"), Guard((tmp_path / "undone").touch, "again"):
        raise ValueError("as it goes")
    assert (tmp_path / "undone").exists()


def test_what_is_killed_is_undone(tmp_path: Path) -> None:
    pid = os.fork()
    if not pid:
        with Guard((tmp_path / "undone").touch, "again"):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    deadline = time.monotonic() + 20
    while not (tmp_path / "undone").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_whoever_is_watched_hears_that_the_guard_was_killed(tmp_path: Path) -> None:
    guard = Guard((tmp_path / "undone").touch, "again")
    os.kill(guard._watcher._pid, signal.SIGKILL)
    guard._watcher.wait()
    with pytest.raises(MachineError, match="was killed"):
        guard.commit()


def test_a_watcher_holds_nothing_but_its_pipe(tmp_path: Path) -> None:
    with open(tmp_path / "held", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        watcher = Watcher(lambda pipe: len(os.read(pipe, 1)), alone=True)
        held.close()
        with open(tmp_path / "held") as again:
            fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    watcher.say(b"x")
    watcher.close()
    assert os.waitstatus_to_exitcode(watcher.wait()) == 1


def test_what_could_not_be_undone_is_said() -> None:
    def undo() -> None:
        raise MachineError("no")

    with pytest.raises(MachineError, match="could not be undone"), Guard(undo, "again"):
        pass
