from __future__ import annotations

import sys
from pathlib import Path

import pytest

from backends.nftables.backend import NftablesBackend
from backends.testbed import libnftables
from translate.errors import MachineError

# Like the distribution's package: the public class comes from a submodule of the same name.
FAKE = {"__init__.py": "from .nftables import *\n", "nftables.py": "class Nftables:\n    pass\n"}


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No bindings anywhere but where the test puts them."""
    monkeypatch.setitem(sys.modules, "nftables", None)  # what import takes for missing
    monkeypatch.setattr(libnftables, "_PLACES", (str(tmp_path),))
    return tmp_path


def test_bindings_are_found_by_path_and_load_their_submodule(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = nowhere / "nftables"
    package.mkdir()
    for name, text in FAKE.items():
        (package / name).write_text(text)
    monkeypatch.delitem(sys.modules, "nftables")
    monkeypatch.setattr(sys, "path", [])
    found = libnftables.find_bindings()
    monkeypatch.delitem(sys.modules, "nftables.nftables")
    assert found.Nftables.__module__ == "nftables.nftables"
    assert Path(str(found.__file__)).parent == package


def test_missing_bindings_say_what_to_install(nowhere: Path) -> None:
    with pytest.raises(MachineError, match="python3-nftables"):
        libnftables.find_bindings()
    found = NftablesBackend().probe()
    assert not found.ok
    assert "python3-nftables" in found.reason
