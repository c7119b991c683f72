from __future__ import annotations

import struct
from pathlib import Path

import pytest

from backends.tc_ebpf.cgroups import cgroup_entries
from translate.errors import MachineError

MOUNT = "41 31 0:38 / {} rw,relatime - {} cgroup2 rw\n"


def mounted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, kind: str = "cgroup2", root: int | None = None
) -> None:
    place = tmp_path / "with space"
    place.mkdir()
    mounts = tmp_path / "mountinfo"
    written = str(place).replace(" ", "\\040")
    mounts.write_text(MOUNT.format(tmp_path / "missing", kind) + MOUNT.format(written, kind))
    monkeypatch.setattr("backends.tc_ebpf.cgroups._MOUNTS", mounts)
    monkeypatch.setattr("backends.tc_ebpf.cgroups._ROOT", place.stat().st_ino if root is None else root)
    (place / "a.slice").mkdir()


def test_a_cgroup_has_the_number_of_its_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mounted(monkeypatch, tmp_path)
    number = (tmp_path / "with space" / "a.slice").stat().st_ino
    assert cgroup_entries(["a.slice"]) == [(struct.pack("=I", 0), struct.pack("=Q", number))]
    with pytest.raises(MachineError, match="there is no cgroup b"):
        cgroup_entries(["a.slice", "b"])


@pytest.mark.parametrize(("kind", "root"), [("tmpfs", None), ("cgroup2", 0)])
def test_the_whole_hierarchy_is_needed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, root: int | None
) -> None:
    mounted(monkeypatch, tmp_path, kind=kind, root=root)
    with pytest.raises(MachineError, match="is not mounted as a whole"):
        cgroup_entries(["a.slice"])
