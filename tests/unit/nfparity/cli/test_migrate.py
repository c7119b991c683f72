from __future__ import annotations

from pathlib import Path

import pytest

from nfparity.cli.main import main


@pytest.mark.parametrize("words", [("migrate", "apply"), ("migrate", "verify")])
def test_help_has_an_example(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*words, "--help"])
    assert caught.value.code == 0
    assert "example:\n  nfparity" in capsys.readouterr().out


def test_what_is_no_plan_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan"
    path.write_text("*nat\nCOMMIT\n")
    assert main(["migrate", "apply", str(path), "--state", str(tmp_path / "state")]) == 2
    assert "not a plan of nfparity migrate" in capsys.readouterr().err
    assert not (tmp_path / "state").exists()
    assert main(["migrate", "apply", str(tmp_path / "none")]) == 2


@pytest.mark.parametrize("seconds", ["0", "-1", "x", "nan", "100000"])
def test_a_time_to_confirm_in(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["migrate", "apply", "plan", "--confirm-within", seconds])
    assert caught.value.code == 2
    assert "is not a number of seconds" in capsys.readouterr().err
