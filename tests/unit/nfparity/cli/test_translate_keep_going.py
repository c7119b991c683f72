"""``translate --keep-going``: refused rules become counters, and the exit status says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from nfparity.cli import main

RULES = """\
*filter
:FORWARD ACCEPT [0:0]
-A FORWARD -s 10.0.0.1/32 -m osf --genre Linux -j ACCEPT
-A FORWARD -m recent --rcheck --rttl --name a --rsource -j DROP
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
    assert lines[0] == "# INCOMPLETE: 2 rules are not translated; gap_line_N counts the packets at line N"
    assert [line.partition(": ")[0] for line in lines[1:3]] == ["# line 3", "# line 4"]
    counting = [line.strip() for line in lines if "counter name" in line]
    assert counting[0].startswith("ip saddr 10.0.0.1 counter name nfacct_gap_line_3")
    assert counting[1].startswith("counter name nfacct_gap_line_4")
    assert any("dport 22" in line and "drop" in line for line in lines)
    assert "-m osf is not modelled" in shown.err
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
    assert "--keep-going needs --to nft or --to bpf" in capsys.readouterr().err


OTHER_PORT = RULES.replace("--dport 22", "--dport 23").replace("10.0.0.1/32", "10.0.0.9/32")


@pytest.mark.parametrize(("form", "sign"), [("nft", "#"), ("bpf", "//")])
def test_a_change_leaves_refused_rules_out_of_both(
    form: str, sign: str, rules: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "old"
    old.write_text(OTHER_PORT)
    assert main(["translate", rules, "--to", form, "--against", str(old)]) == 2
    capsys.readouterr()
    assert main(["translate", rules, "--to", form, "--against", str(old), "--keep-going"]) == 1
    shown = capsys.readouterr()
    assert shown.out.startswith(f"{sign} INCOMPLETE: 2 rules are not translated")
    assert "-m osf is not modelled" in shown.err
    assert "nfparity: change:" in shown.err


def test_a_change_between_equal_translations_lists_refused_rules_alone(
    rules: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for form in ("nft", "bpf"):
        assert main(["translate", rules, "--to", form, "--against", rules, "--keep-going"]) == 1
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 3
        assert all(line.startswith("# ") for line in lines)
