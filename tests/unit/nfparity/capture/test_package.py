"""Capture runs on nodes: old Pythons, nothing installed."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from nfparity.capture.package import make

ROOT = Path(__file__).resolve().parents[4]
CARRIED = tuple(f"harness/files/{name}.py" for name in ("errors", "output", "wholefiles"))
SOURCES = sorted([*(ROOT / "nfparity/capture").rglob("*.py"), *(ROOT / path for path in CARRIED)])
OURS = ("nfparity.capture.", *(path.removesuffix(".py").replace("/", ".") for path in CARRIED))


@pytest.mark.parametrize("path", SOURCES, ids=[p.name for p in SOURCES])
def test_its_source_is_python_3_8_of_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    for node in ast.walk(tree):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [str(node.module)]
        for name in names:
            assert name.startswith(OURS) or name.partition(".")[0] in sys.stdlib_module_names


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("build") / "capture.pyz"
    make(target)
    return target


def pythons() -> list[str]:
    found = [str(p) for p in Path.home().glob(".pyenv/versions/3.*/bin/python")]
    found += [one for minor in range(8, 15) if (one := shutil.which(f"python3.{minor}"))]
    wanted = []
    for one in found:
        asks = "import sys; sys.exit(sys.version_info < (3, 8))"
        if not subprocess.run((one, "-c", asks), capture_output=True).returncode:
            wanted.append(one)
    return [sys.executable, *wanted]


def test_it_runs_as_one_file_with_every_python_there_is(packed: Path, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    save = tools / "iptables-nft-save"
    save.write_text("#!/bin/sh\necho '*filter'\necho ':INPUT ACCEPT [0:0]'\necho COMMIT\n")
    save.chmod(0o755)
    for python in pythons():
        done = subprocess.run(
            (python, "-I", "-S", str(packed), "-o", "-"),
            capture_output=True,
            env={"PATH": f"{tools}:/usr/bin:/bin"},
        )
        assert done.returncode == 0, (python, done.stderr)
        with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
            assert "meta.json" in archive.getnames()


def test_the_same_source_makes_the_same_file(packed: Path, tmp_path: Path) -> None:
    make(tmp_path / "again.pyz")
    assert (tmp_path / "again.pyz").read_bytes() == packed.read_bytes()
