"""``nfparity translate --to ir``, and the examples of docs/ir.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nfparity.cli.main import main
from translate.irtext import parse_program, print_program
from translate.passes import lower
from translate.read import read_ruleset

ROOT = Path(__file__).resolve().parents[4]
RULES = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp -j DROP\n-A INPUT -p udp -j DROP\nCOMMIT\n"


def test_the_examples_of_the_documentation_are_real(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rules, chosen, flat = re.findall(r"^```\n(.*?)^```$", (ROOT / "docs/ir.md").read_text(), re.M | re.S)[:3]
    monkeypatch.chdir(tmp_path)
    Path("rules").write_text(rules)
    assert main(["translate", "rules", "--to", "ir", "--after", "choose"]) == 0
    assert capsys.readouterr().out == chosen
    assert main(["translate", "rules", "--to", "ir", "--after", "flatten"]) == 0
    assert flat in capsys.readouterr().out


@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_last_pass_is_the_default(level: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "rules"
    rules.write_text(RULES)
    assert main(["translate", str(rules), "--to", "ir", f"-O{level}"]) == 0
    program = lower(read_ruleset(RULES.encode(), name=str(rules)), level=level)
    printed = capsys.readouterr().out
    assert printed == print_program(program)
    assert parse_program(printed, name="printed") == program
    assert ("lookup" in printed) is (level > 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--to", "ir", "--after", "tmplate"],
            "-O2 has no pass 'tmplate'; did you mean template? Its passes are",
        ),
        (
            ["--to", "ir", "-O1", "--after", "template"],
            "Its passes are: flatten, prune, normalise, choose, lookup, prune-2",
        ),
        (["--to", "nft", "--after", "prune"], "--after needs --to ir, not --to nft"),
        (["--to", "ir", "--against", "-"], "--against needs --to nft or --to bpf, not --to ir"),
    ],
)
def test_what_cannot_be_printed(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "rules"
    rules.write_text(RULES)
    if "--against" in arguments:
        arguments = [*arguments[:-1], str(rules)]
    assert main(["translate", str(rules), *arguments]) == 2
    assert message in capsys.readouterr().err
