from __future__ import annotations

import os
from pathlib import Path

import pytest

import backends.tc_ebpf.programs.bcc
from backends.tc_ebpf.programs.bcc import headers_package


def test_the_headers_of_an_installed_kernel_are_in_the_package_of_its_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(backends.tc_ebpf.programs.bcc, "_DPKG", tmp_path)
    newest = headers_package()
    assert newest in ("linux-headers-amd64", "linux-headers-arm64")
    release = os.uname().release
    (tmp_path / f"linux-image-{release}.list").touch()
    assert headers_package() == f"linux-headers-{release}"
