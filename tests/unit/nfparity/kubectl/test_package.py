"""The plugin as one file: old Pythons, nothing installed."""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from nfparity.kubectl.package import make
from tests.unit.nfparity.capture.test_package import pythons


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("build") / "kubectl-nfparity"
    make(target)
    return target


def test_its_source_is_python_3_8_of_the_standard_library(plugin: Path) -> None:
    with zipfile.ZipFile(plugin) as archive:
        names = archive.namelist()
        for name in names:
            for node in ast.walk(ast.parse(archive.read(name), feature_version=(3, 8))):
                if not isinstance(node, ast.Import | ast.ImportFrom):
                    continue
                imported = (
                    [str(node.module)] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
                )
                for module in imported:
                    inside = f"{module.replace('.', '/')}.py" in names
                    assert inside or module.partition(".")[0] in sys.stdlib_module_names, (name, module)


def test_it_runs_as_one_file(plugin: Path) -> None:
    for python in pythons()[:2]:
        done = subprocess.run([python, "-I", "-S", plugin, "--help"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "usage: kubectl nfparity" in done.stdout


def test_the_same_source_makes_the_same_file(plugin: Path, tmp_path: Path) -> None:
    make(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == plugin.read_bytes()
