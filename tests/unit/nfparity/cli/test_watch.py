"""``nfparity watch`` between two snapshots: reports, files and exit statuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nfparity.cli import main

RULES = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\nCOMMIT\n"


def snapshot(folder: Path, rules: str) -> str:
    folder.mkdir()
    (folder / "iptables-save").write_text(rules)
    return str(folder)


@pytest.fixture
def before(tmp_path: Path) -> str:
    return snapshot(tmp_path / "before", RULES)


@pytest.fixture
def later(tmp_path: Path) -> str:
    return snapshot(tmp_path / "later", RULES.replace("22", "23"))


def test_nothing_has_changed(before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = snapshot(tmp_path / "same", RULES.replace("[0:0]", "[9:540]"))
    assert main(["watch", before, "--now", same]) == 0
    assert capsys.readouterr().out == "0 differences; 1 of 1 tables and ipsets are unchanged\n"


def test_a_change_is_reported(before: str, later: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", before, "--now", later]) == 1
    assert capsys.readouterr().out == (
        "iptables-legacy filter: changed: chain INPUT, rule 1: -p tcp -m tcp --dport 22 -j ACCEPT became"
        " -p tcp -m tcp --dport 23 -j ACCEPT\n"
        "1 difference; 0 of 1 tables and ipsets are unchanged\n"
    )
    assert main(["watch", before, "--now", later, "--ignore", "iptables-legacy filter: chain INPUT*"]) == 0


def test_other_forms(before: str, later: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", before, "--now", later, "--format", "json"]) == 1
    (one,) = json.loads(capsys.readouterr().out)["iptables-legacy filter"]
    assert (one["change"], one["where"]) == ("changed", "chain INPUT, rule 1")
    path = tmp_path / "nfparity.prom"
    assert main(["watch", before, "--now", later, "--format", "openmetrics", "-o", str(path)]) == 1
    assert 'nfparity_drift{table="iptables-legacy filter"} 1\n' in path.read_text()


def test_tables_that_cannot_be_read_are_not_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """nft 1.0.6 may print no JSON at all for a table with a flag."""
    before = snapshot(tmp_path / "both", RULES)
    listing = '{"nftables": [{"metainfo": {}}, {"table": {"family": "ip", "name": "a", "handle": 1}}]}'
    (tmp_path / "both" / "nft.json").write_text(listing)
    live = ({"iptables-save": RULES.encode()}, ("nft -j list ruleset prints no JSON",))
    monkeypatch.setattr("nfparity.capture.node.capture_node", lambda **_: live)
    assert main(["watch", before]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert "the nftables rules of this node cannot be read: nft -j list ruleset prints no JSON" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--now", "BEFORE", "--every", "5"], "--every compares with the node itself"),
        (["--every", "0"], "argument --every"),
        (["--every", "soon"], "argument --every"),
        (["--now", "nowhere"], "nowhere"),
        (["--now", "EMPTY"], "no rules, no ipsets and no tables"),
        (["--now", "DAMAGED"], "iptables-save:2: expected a line of iptables-save"),
        (["--now", "RULES"], "expected a snapshot"),
    ],
)
def test_bad_input(
    before: str, words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "meta.json").write_text('{"format": 1}')
    names = {
        "BEFORE": before,
        "EMPTY": str(empty),
        "DAMAGED": snapshot(tmp_path / "damaged", "*filter\n\x1b[31m\n"),
        "RULES": f"{before}/iptables-save",
    }
    try:
        status = main(["watch", before, *(names.get(word, word) for word in words)])
    except SystemExit as e:
        status = int(str(e.code))
    assert status == 2
    err = capsys.readouterr().err
    assert message in err
    assert "\x1b" not in err
