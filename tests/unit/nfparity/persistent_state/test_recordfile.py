"""A record that is kept twice."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfparity.persistent_state import disk
from nfparity.persistent_state.recordfile import read_record, write_record
from translate.errors import MachineError

ONE, TWO = {"phase": "one", "n": 1.5}, {"phase": "two", "list": [1, None, "x"]}


def test_it_comes_back_and_is_overwritten_in_place(tmp_path: Path) -> None:
    path = tmp_path / "record"
    assert read_record(path) is None
    write_record(path, ONE)
    before = path.stat()
    assert before.st_size == 8192
    for record in (TWO, ONE, TWO):
        write_record(path, record)
        assert read_record(path) == record
    after = path.stat()
    assert (after.st_ino, after.st_size) == (before.st_ino, before.st_size)
    assert [json.loads(line)["record"] for line in path.read_text().splitlines()] == [TWO, TWO]


def test_one_that_grows_gets_a_larger_file(tmp_path: Path) -> None:
    path = tmp_path / "record"
    write_record(path, ONE)
    large = {"names": ["x" * 100] * 100}
    write_record(path, large)
    assert read_record(path) == large
    write_record(path, TWO)
    assert read_record(path) == TWO
    assert [file.name for file in tmp_path.iterdir()] == ["record"]


@given(st.integers(0, 8191), st.integers(1, 4096), st.binary(min_size=1, max_size=8))
def test_damage_to_one_copy_loses_nothing(start: int, length: int, pattern: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "record"
        write_record(path, ONE)
        write_record(path, TWO)
        data = bytearray(path.read_bytes())
        end = min(start + length, 4096 if start < 4096 else 8192)
        data[start:end] = (pattern * length)[: end - start]
        path.write_bytes(data)
        assert read_record(path) == TWO
        write_record(path, ONE)
        assert read_record(path) == ONE


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe", b"[]", b"{}" + b" " * 8190 + b"{", b"\0" * 8192, b"[" * 100_000]
)
def test_what_is_damaged_everywhere(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "record"
    path.write_bytes(data)
    with pytest.raises(MachineError, match="is damaged"):
        read_record(path)
    write_record(path, ONE)
    assert read_record(path) == ONE


def test_plain_json_of_an_older_version(tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.write_text(json.dumps(ONE, indent=1))
    assert read_record(path) == ONE
    write_record(path, TWO)
    assert read_record(path) == TWO


def test_others_have_no_say(tmp_path: Path) -> None:
    path = tmp_path / "record"
    write_record(path, ONE)
    path.chmod(0o666)
    with pytest.raises(MachineError, match="users other than root can write"):
        read_record(path)
    path.unlink()
    write_record(tmp_path / "other", TWO)
    path.symlink_to(tmp_path / "other")
    with pytest.raises(MachineError, match="symbolic link"):
        read_record(path)
    write_record(path, ONE)
    assert read_record(path) == ONE
    assert read_record(tmp_path / "other") == TWO


class Refusing:
    """In the place of ``os``: from a write on, all of them fail, after half of the data."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def pwrite(self, descriptor: int, data: bytes, at: int) -> int:
        self.left -= 1
        if self.left < 0:
            os.pwrite(descriptor, data[: len(data) // 2], at)
            raise OSError(errno.EIO, "Input/output error")
        return os.pwrite(descriptor, data, at)


@pytest.mark.parametrize(("at", "left"), [(0, ONE), (1, TWO)])
def test_a_write_that_fails_in_the_middle(
    tmp_path: Path, at: int, left: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record is the one from before, or, where the first copy is whole, the new one."""
    path = tmp_path / "record"
    write_record(path, ONE)
    monkeypatch.setattr(disk, "os", Refusing(at))
    if left is ONE:
        with pytest.raises(MachineError, match="Input/output error"):
            write_record(path, TWO)
    else:
        write_record(path, TWO)
    monkeypatch.undo()
    assert read_record(path) == left
    write_record(path, TWO)
    assert read_record(path) == TWO
