"""The place of a dataplane's state."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nfparity.tc import place


@pytest.mark.parametrize(("parent", "stays"), [("self", True), ("gone", True), ("other", False)])
def test_who_may_not_look_at_init_asks_its_parent(
    parent: str, stays: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = os.stat

    def stat(path: str) -> os.stat_result:
        if path == "/proc/1/ns/mnt" or (path != "/proc/self/ns/mnt" and parent == "gone"):
            raise PermissionError(13, "Permission denied")
        if path != "/proc/self/ns/mnt" and parent == "other":
            return real(tmp_path)
        return real("/proc/self/ns/mnt")

    monkeypatch.setattr(os, "getppid", lambda: 77)  # in a container it may be 1
    monkeypatch.setattr(os, "stat", stat)
    found = place._mounts_stay()
    monkeypatch.undo()
    assert found is stays
