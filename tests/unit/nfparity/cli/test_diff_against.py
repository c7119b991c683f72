"""``nfparity diff --against``: what is no ruleset is told before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from nfparity.cli.main import main

RULES = "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n"
FLOW = '{"id": "a", "src": "10.0.0.1", "dst": "10.0.0.2", "proto": "tcp", "sport": 1, "dport": 443}\n'


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (b"", "", "no ruleset in this text"),
        (b"*nat\nCOMMIT\n", ":1", "'*nat' does not begin a table or a command"),
        (b"table ip a {\n\tchain b {\n\t\txt target LOG\n\t}\n}\n", ":3", "iptables-nft-save"),
        (b"table ip a {\n", ":1", "this brace is never closed"),
        (b"table ip a { # Z\xfcrich\n}\n", "", "not UTF-8 text"),
        (b'{"nftables": []', ":1:16", "not JSON"),
    ],
)
def test_what_is_no_ruleset(
    text: bytes, place: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules, flows, given = (tmp_path / name for name in ("rules", "flows.jsonl", "given.nft"))
    rules.write_text(RULES)
    flows.write_text(FLOW)
    given.write_bytes(text)
    assert main(["diff", str(rules), "--corpus", str(flows), "--against", str(given)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"nfparity: {given}{place}:"), err
    assert message in err


def test_a_missing_file_and_two_standard_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "rules"
    rules.write_text(RULES)
    assert main(["diff", str(rules), "--random", "3", "--against", str(tmp_path / "none")]) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert main(["diff", "-", "--random", "3", "--against", "-"]) == 2
    assert "only one of" in capsys.readouterr().err


def test_a_snapshot_without_a_ruleset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, folder = tmp_path / "rules", tmp_path / "node"
    rules.write_text(RULES)
    folder.mkdir()
    (folder / "iptables-save").write_text(RULES)
    assert main(["diff", str(rules), "--random", "3", "--against", str(folder)]) == 2
    assert "no nftables ruleset in this snapshot" in capsys.readouterr().err


def test_rules_beside_nothing_or_for_another_family(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules, given = tmp_path / "rules", tmp_path / "given.nft"
    rules.write_text(RULES)
    given.write_text("table inet a {\n}\n")
    assert main(["diff", str(rules), "--random", "3", "--with-iptables", str(rules)]) == 2
    assert "--with-iptables needs --against" in capsys.readouterr().err
    words = ["diff", str(rules), "--random", "3", "--against", str(given), "--with-iptables"]
    assert main([*words, str(tmp_path)]) == 2
    assert "--with-iptables needs a file of rules" in capsys.readouterr().err
    assert main([*words, str(tmp_path / "none")]) == 2
    assert "cannot be read" in capsys.readouterr().err
