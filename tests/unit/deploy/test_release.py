"""A release: every file has its checksum, and a commit gives the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.release import write_checksums
from nfparity.cli.main import VERSION

ROOT = Path(__file__).parents[3]


def test_checksums_are_those_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("b")
    (tmp_path / "a").write_text("a")
    write_checksums(tmp_path)
    write_checksums(tmp_path)
    assert [line.split()[1] for line in (tmp_path / "SHA256SUMS").read_text().splitlines()] == ["a", "b"]
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path, check=True)
    (tmp_path / "a").write_text("c")
    assert subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=tmp_path).returncode == 1


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the repository")
def test_a_commit_gives_the_same_bytes(tmp_path: Path) -> None:
    sums = []
    for name in ("a", "b"):
        done = subprocess.run(
            [sys.executable, "-m", "deploy.release", tmp_path / name, "--without-images"],
            cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        sums.append(done.stdout)
    assert sums[0] == sums[1]
    assert [line.split()[1] for line in sums[0].splitlines()] == sorted(
        [
            f"kubectl-nfparity-{VERSION}.tar.gz",
            f"nfparity-{VERSION}-py3-none-any.whl",
            f"nfparity-{VERSION}.tar.gz",
            f"nfparity-capture-{VERSION}.pyz",
            f"nfparity_{VERSION}_all.deb",
            "nfparity.krew.yaml",
        ]
    )
