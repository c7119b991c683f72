from __future__ import annotations

import json
from pathlib import Path

import pytest

from translate.errors import MachineError
from vm.kernel import MANIFEST, ensure_headers, ensure_kernel, newest_first

NAMES = (
    "linux-image-6.1.0-9-amd64",
    "linux-image-6.1.0-56-amd64",
    "linux-image-6.1.0-56-amd64-unsigned",
    "linux-image-6.1.0-57-rt-amd64",
    "linux-image-6.1.0-57-cloud-amd64",
    "linux-image-6.1.0-58-amd64-dbg",
    "linux-image-6.12-amd64",
    "linux-image-6.12.100+deb12-amd64",
    "linux-image-6.12.99+deb12-amd64",
    "linux-image-6.12.0-0.deb12.1-amd64",
    "linux-image-amd64",
)


def test_numbers_count_as_numbers() -> None:
    assert newest_first(NAMES, "6.1") == ("6.1.0-56-amd64", "6.1.0-9-amd64")


def test_a_series_is_not_a_prefix_of_another() -> None:
    assert newest_first(NAMES, "6.12") == (
        "6.12.100+deb12-amd64",
        "6.12.99+deb12-amd64",
        "6.12.0-0.deb12.1-amd64",
    )


def test_no_such_series() -> None:
    assert newest_first(NAMES, "5.10") == ()


@pytest.mark.parametrize("series", ["6", "latest", "6.1.0", "../6.1", ""])
def test_what_is_no_series_is_refused(series: str, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="is not a kernel series"):
        ensure_kernel(series, build=tmp_path, say=pytest.fail)


class _Interrupted:
    """An archive whose download ends when the headers of a kernel are there in part."""

    def download(self, packages: tuple[str, ...], folder: Path) -> list[Path]:
        generated = folder.parent / "usr/src/linux-headers-6.1.0-9-amd64/include/generated"
        generated.mkdir(parents=True)
        raise KeyboardInterrupt


def test_headers_that_are_not_complete_are_not_where_programs_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = ("linux-headers-6.1.0-9-amd64",)
    monkeypatch.setattr("vm.kernel._look_up", lambda *_, **__: (_Interrupted(), "6.1.0-9-amd64", packages))
    for ensure in (ensure_headers, ensure_kernel):
        with pytest.raises(KeyboardInterrupt):
            ensure("6.1", build=tmp_path, say=lambda _: None)
    assert list(tmp_path.rglob("include/generated")), "something was unpacked"
    assert list(tmp_path.glob("kernels/*")) == []


def test_an_unpacked_kernel_is_used_as_it_is(tmp_path: Path) -> None:
    root = tmp_path / "kernels" / "6.1"
    root.mkdir(parents=True)
    (root / MANIFEST).write_text(json.dumps({"version": "6.1.0-56-amd64", "packages": []}))
    kernel = ensure_kernel("6.1", build=tmp_path, say=pytest.fail)
    assert kernel.image == root / "boot" / "vmlinuz-6.1.0-56-amd64"
    assert kernel.modules == root / "lib" / "modules" / "6.1.0-56-amd64"
