"""The snapshots of a command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from nfparity.assess.fleet.paths import is_collection, labels, snapshot_paths
from translate.errors import InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two archives, a snapshot that is a folder, and what is none."""
    for name in ("b.tar.gz", "a.tgz", "README"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "iptables-save").write_bytes(b"")
    (tmp_path / "other").mkdir()
    return tmp_path


def test_a_folder_of_snapshots_is_no_snapshot(folder: Path) -> None:
    assert is_collection(str(folder))
    assert not is_collection(str(folder / "c"))
    assert not is_collection(str(folder / "b.tar.gz"))
    assert not is_collection(str(folder / "missing"))


def test_all_in_a_folder_and_nothing_else(folder: Path) -> None:
    names = [Path(path).name for path in snapshot_paths([str(folder)])]
    assert names == ["a.tgz", "b.tar.gz", "c"]


def test_each_once_in_the_order_given(folder: Path) -> None:
    first = str(folder / "c")
    paths = snapshot_paths([first, str(folder), f"{folder}/./c/", "missing.tar.gz"])
    assert paths == (first, str(folder / "a.tgz"), str(folder / "b.tar.gz"), "missing.tar.gz")


def test_a_folder_without_any(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no snapshot, and none inside"):
        snapshot_paths([str(tmp_path)])


def test_names_are_short_while_they_tell_nodes_apart() -> None:
    assert labels(["x/a.tar.gz", "x/b.tgz", "x/c/"]) == ("a", "b", "c")
    assert labels(["x/a.tar.gz", "y/a.tar.gz"]) == ("x/a.tar.gz", "y/a.tar.gz")
