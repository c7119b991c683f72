"""A log in space that is there already."""

from __future__ import annotations

from pathlib import Path

import pytest

from nfparity.persistent_state.reservedlog import ReservedLog
from translate.errors import MachineError


def test_lines_take_the_space_that_is_there(tmp_path: Path) -> None:
    log = ReservedLog(tmp_path / "log")
    assert log.lines() == ()
    log.begin(64)
    before = log.path.stat()
    log.add("one")
    log.add("two")
    assert log.lines() == (b"one", b"two")
    assert (log.path.stat().st_ino, log.path.stat().st_size) == (before.st_ino, 64)
    log.add("x" * 100)
    log.add("last")
    assert log.lines()[2:] == (b"x" * 100, b"last")
    log.begin(64)
    assert log.lines() == ()


def test_a_line_that_was_cut_does_not_take_the_next_along(tmp_path: Path) -> None:
    log = ReservedLog(tmp_path / "log")
    log.begin(64)
    log.add("one")
    log.path.write_bytes(b"one\ntw" + b"\0" * 58)
    log.add("three")
    assert log.lines() == (b"one", b"tw", b"three")


def test_one_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="there is no such file"):
        ReservedLog(tmp_path / "log").add("one")
    (tmp_path / "folder").mkdir()
    with pytest.raises(MachineError, match="cannot read"):
        ReservedLog(tmp_path / "folder").lines()
