"""``translate --keep-going``: refused rules become counters, and the exit status says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from nfparity.cli import main

RULES = """\
*filter
:FORWARD ACCEPT [0:0]
-A FORWARD -s 10.0.0.1/32 -m limit --limit 1/s -j ACCEPT
-A FORWARD -m recent --rcheck --hitcount 3 --name a --rsource -j DROP
-A FORWARD -m recent --set --name a --rsource
-A FORWARD -p tcp -m tcp --dport 22 -j DROP
COMMIT
"""


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "rules"
    path.write_text(RULES)
    return str(path)


@pytest.mark.parametrize("level", ["0", "1", "2"])
def test_a_counter_stands_in_the_place_of_each(
    level: str, rules: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["translate", rules, "--to", "nft", "--keep-going", "-O", level]) == 1
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0] == "# INCOMPLETE: 2 rules are not translated; gap_line_N counts what comes to line N"
    assert [line.partition(": ")[0] for line in lines[1:3]] == ["# line 3", "# line 4"]
    counting = [line.strip() for line in lines if "counter name" in line]
    assert counting[0].startswith("ip saddr 10.0.0.1 counter name nfacct_gap_line_3")
    assert counting[1].startswith("counter name nfacct_gap_line_4")
    assert any("dport 22" in line and "drop" in line for line in lines)
    assert "-m limit is not modelled" in shown.err
    assert "nfacct object" not in shown.err


def test_for_the_tc_program_they_are_listed(rules: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", rules, "--to", "bpf", "--keep-going"]) == 1
    assert capsys.readouterr().out.startswith("// INCOMPLETE: 2 rules are not translated")


def test_a_translation_without_gaps_is_the_usual_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rules"
    path.write_text("*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -j DROP\nCOMMIT\n")
    assert main(["translate", str(path), "--to", "nft"]) == 0
    usual = capsys.readouterr().out
    assert main(["translate", str(path), "--to", "nft", "--keep-going"]) == 0
    assert capsys.readouterr().out == usual


def test_it_goes_with_translations_alone(rules: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", rules, "--to", "iptables", "--keep-going"]) == 2
    assert "--keep-going goes with --to nft and --to bpf" in capsys.readouterr().err
