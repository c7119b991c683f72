from __future__ import annotations

import json
from pathlib import Path

import pytest

import vm.nft
from vm.nft import RELEASES, ensure_nft


@pytest.mark.parametrize("libraries", ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"])
def test_an_unpacked_nft_runs_with_the_loader_of_its_release(
    libraries: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vm.nft, "machine_version", lambda _: "0.9.8")
    root = tmp_path / "nft" / "trixie"
    (root / libraries).mkdir(parents=True)
    (root / libraries / "ld-linux-x86-64.so.2").touch()
    (root / "unpacked.json").write_text(json.dumps({"packages": []}))
    command = ensure_nft("trixie", build=tmp_path, say=pytest.fail)
    assert command[0] == str(root / libraries / "ld-linux-x86-64.so.2")
    assert str(root / libraries) in command[2].split(":")
    assert command[3] == str(root / "usr/sbin/nft")


@pytest.mark.parametrize("release", RELEASES)
def test_the_machines_own_is_taken_where_it_has_the_version(
    release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vm.nft, "machine_version", lambda _: RELEASES[release])
    assert ensure_nft(release, build=tmp_path, say=pytest.fail) == ("nft",)
