"""Options of ``kubectl nfparity``: wrong ones are refused before anything is created."""

from __future__ import annotations

from pathlib import Path

import pytest

from nfparity.kubectl.program import main
from tests.unit.nfparity.kubectl.helpers.plugin import IMAGE


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "one of the arguments --node --all --cleanup is required"),
        (("--all", "--node", "alpha"), "not allowed with argument"),
        (("--all",), "--image needs an image by its digest"),
        (("--all", "--image", "registry.example/nfparity:1.0"), "--image needs an image by its digest"),
        (("--all", "--image", IMAGE), "nfparity is not installed on this machine"),
        (("--all", "--image", IMAGE, "--capture-only"), "--capture-only needs -o"),
        (("--all", "--image", IMAGE, "-o", "f", "--capture-only", "--timeout", "0"), "--timeout is a number"),
    ],
)
def test_wrong_options(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("NFPARITY_IMAGE", raising=False)
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_machine_without_kubectl(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("KUBECTL", raising=False)
    words = ("--all", "--image", IMAGE, "-o", str(tmp_path / "f"), "--capture-only")
    assert main(words) == 3
    assert "nfparity: kubectl: No such file or directory" in capsys.readouterr().err
