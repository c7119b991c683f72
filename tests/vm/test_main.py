from __future__ import annotations

from pathlib import Path

import pytest

import vm.__main__
from vm.accel import QEMU


def test_no_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        vm.__main__.main(["--kernel", "6.1"])
    assert caught.value.code == 2
    assert "no command given" in capsys.readouterr().err


def test_no_qemu_is_a_machine_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert vm.__main__.main(["--build", str(tmp_path), "--", "true"]) == 3
    assert f"vm: {QEMU} is not installed" in capsys.readouterr().err
