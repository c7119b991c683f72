"""Registries of extensions that import a file when it is first needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import translate.read.extensions as package
from translate.read.extensions import MATCHES, TARGETS
from translate.read.extensions.declaration import MatchExtension, TargetExtension
from translate.read.extensions.registry import Registry

FOLDER = Path(package.__file__).parent
NO_EXTENSIONS = {"__init__", "chunks", "declaration", "registry", "unmodelled"}


def imported_by(statement: str) -> set[str]:
    """Return the files of extensions that a new interpreter imports for a statement."""
    program = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    prefix = f"{package.__name__}."
    names = {name.removeprefix(prefix) for name in done.stdout.split() if name.startswith(prefix)}
    return names - NO_EXTENSIONS


def test_only_the_extensions_of_the_rules_are_imported() -> None:
    read = "from translate.read import read_ruleset; read_ruleset(b'*filter\\n{}COMMIT\\n', name='r')"
    assert imported_by(read.format("")) == set()
    rule = "-A INPUT -p tcp --dport 80 -m u32 --u32 0=1 -j TEE --gateway 10.0.0.1\\n"
    assert imported_by(read.format(rule)) == {"tee", "transport", "u32"}


def test_every_file_with_an_extension_is_in_a_registry() -> None:
    """A file declares an extension if it calls one of the two classes."""
    declaring = set()
    for path in FOLDER.glob("*.py"):
        calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        called = {function.id for function in calls if isinstance(function, ast.Name)}
        if called & {MatchExtension.__name__, TargetExtension.__name__}:
            declaring.add(path.stem)
    loaded = {type(each).__name__ for registry in (MATCHES, TARGETS) for each in registry.values()}
    assert loaded == {MatchExtension.__name__, TargetExtension.__name__}
    modules = {name.rpartition(".")[2] for name in sys.modules if name.startswith(f"{package.__name__}.")}
    assert declaring - NO_EXTENSIONS <= modules


def test_a_place_of_another_kind_or_name() -> None:
    assert Registry(MatchExtension, {"u32": "u32.U32"})["u32"].name == "u32"
    with pytest.raises(AssertionError, match=r"verdict\.ACCEPT is of another kind"):
        Registry(MatchExtension, {"ACCEPT": "verdict.ACCEPT"})["ACCEPT"]
    with pytest.raises(ValueError, match="not enough values"):
        Registry(MatchExtension, {"u33": "u32.U32"})["u33"]
    with pytest.raises(KeyError):
        MATCHES["ACCEPT"]
