from __future__ import annotations

import json
from pathlib import Path

import pytest

import vm.translator
from translate.ir import Family
from vm.translator import RELEASES, ensure_translator


def test_an_unpacked_translator_runs_with_the_plugins_and_the_loader_of_its_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vm.translator, "machine_version", lambda _: "1.4.21")
    root = tmp_path / "iptables" / "trixie"
    libraries = root / "usr/lib/x86_64-linux-gnu"
    libraries.mkdir(parents=True)
    (libraries / "ld-linux-x86-64.so.2").touch()
    (root / "unpacked.json").write_text(json.dumps({"packages": []}))
    command = ensure_translator("trixie", Family.IP6, build=tmp_path, say=pytest.fail)
    assert command[:3] == (
        "env",
        f"XTABLES_LIBDIR={libraries / 'xtables'}",
        str(libraries / "ld-linux-x86-64.so.2"),
    )
    assert command[-2:] == (str(root / "usr/sbin/xtables-nft-multi"), "ip6tables-restore-translate")


@pytest.mark.parametrize("release", RELEASES)
def test_the_machines_own_is_taken_where_it_has_the_version(
    release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vm.translator, "machine_version", lambda _: RELEASES[release])
    command = ensure_translator(release, Family.IP, build=tmp_path, say=pytest.fail)
    assert command == ("iptables-restore-translate",)
