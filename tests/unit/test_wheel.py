"""The wheel: what somebody gets who installs nfparity with pip."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_wheel_has_the_licence_the_types_and_all_data(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x"], input=packed, cwd=tree, check=True)
    made = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", f"--wheel-dir={tmp_path}", str(tree)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert any(name.endswith("licenses/LICENSE") for name in names)
    for package in ("translate", "backends", "harness", "nfparity", "vm"):
        assert f"{package}/py.typed" in names
        data = {path for path in _tracked(package) if Path(path).suffix not in (".py", ".md")}
        assert data <= names


def _tracked(folder: str) -> list[str]:
    listed = subprocess.run(["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()
