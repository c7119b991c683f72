from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import backends.tc_ebpf.programs.bcc
from backends.tc_ebpf.programs.bcc import headers_package, import_bcc
from translate.errors import MachineError


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A package in the place of BCC, which has no bytecode."""
    folder = tmp_path / "bcc"
    folder.mkdir()
    (folder / "libbcc.py").touch()
    (folder / "__init__.py").touch()
    monkeypatch.setattr(backends.tc_ebpf.programs.bcc, "_PLACES", (str(tmp_path),))
    monkeypatch.delitem(sys.modules, "bcc", raising=False)
    yield folder
    sys.modules.pop("bcc", None)


@pytest.mark.filterwarnings("error")
def test_warnings_of_the_compiler_are_not_errors(package: Path) -> None:
    (package / "__init__.py").write_text("PATTERN = '\\.'\n")
    assert import_bcc().PATTERN == "\\."


@pytest.mark.parametrize("text", ["1 +\n", "import nothing_of_this_name\n"])
def test_a_package_that_does_not_load(package: Path, text: str) -> None:
    (package / "__init__.py").write_text(text)
    for _ in range(2):
        with pytest.raises(MachineError, match="BCC does not load"):
            import_bcc()


def test_the_headers_of_an_installed_kernel_are_in_the_package_of_its_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(backends.tc_ebpf.programs.bcc, "_DPKG", tmp_path)
    newest = headers_package()
    assert newest in ("linux-headers-amd64", "linux-headers-arm64")
    release = os.uname().release
    (tmp_path / f"linux-image-{release}.list").touch()
    assert headers_package() == f"linux-headers-{release}"
