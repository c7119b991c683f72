"""Snapshots are written whole, for their owner, and over nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.files.errors import CaptureError
from nfparity.capture.files import read_files, write_files

FILES = {"iptables-save": b"*filter\n", "meta.json": b"{}"}


@pytest.mark.parametrize("name", ["node", "node.tar.gz", "node.tgz"])
def test_what_is_written_is_read_again(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_files(str(path), FILES, now=1.0)
    assert read_files(str(path)) == FILES
    assert path.stat().st_mode & 0o077 == 0
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["node", "node.tar.gz"])
def test_nothing_is_written_over(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_files(str(path), FILES, now=1.0)
    with pytest.raises(CaptureError, match=r"already exists|file exists"):
        write_files(str(path), {"meta.json": b"{1}"}, now=1.0)
    assert read_files(str(path)) == FILES


def test_a_place_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="cannot be written: no such file"):
        write_files(str(tmp_path / "no" / "node.tar.gz"), FILES, now=1.0)
