"""Locks between commands."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from nfparity.persistent_state.locking import file_lock, take_lock
from translate.errors import MachineError


def test_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "folder/lock"
    with file_lock(path, inherit=True), open(path) as other:
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(TimeoutError):
            take_lock(path, patience=0)
        with (
            pytest.raises(MachineError, match="another command holds it"),
            file_lock(path, inherit=True, patience=0),
        ):
            raise AssertionError
        with file_lock(path, inherit=True, patience=0, needed=False):
            pass
    with file_lock(path, inherit=False):
        pass


@pytest.mark.parametrize("kind", ["file", "dangling"])
def test_a_folder_that_cannot_be_made(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "folder"
    if kind == "file":
        folder.touch()
    else:
        folder.symlink_to("/nowhere")
    with pytest.raises(MachineError, match="cannot lock"), file_lock(folder / "lock", inherit=True):
        raise AssertionError
    done = False
    with file_lock(folder / "lock", inherit=True, needed=False):
        done = True
    assert done
