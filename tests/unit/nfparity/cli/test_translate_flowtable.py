"""``translate --flowtable``: a flowtable, or the rules that forbid one."""

from __future__ import annotations

from pathlib import Path

import pytest

from nfparity.cli import main

RULES = """\
*filter
:FORWARD DROP [0:0]
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -m conntrack --ctstate NEW -j ACCEPT
COMMIT
"""


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "rules"
    path.write_text(RULES)
    return str(path)


@pytest.mark.parametrize("level", ["0", "1", "2"])
def test_it_is_written(level: str, rules: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["translate", rules, "--to", "nft", "-O", level]
    assert main([*words, "--flowtable", "eth0, eth1", "--flowtable-unchecked"]) == 0
    assert "devices = { eth0, eth1 }" in capsys.readouterr().out


def test_invalid_packets_are_accepted_only_on_request(rules: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", rules, "--to", "nft", "--flowtable", "eth0,eth1"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"{rules}:3: nftables: the rule drops a packet that conntrack finds INVALID" in shown.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--to", "bpf", "--flowtable", "eth0"], "--flowtable needs --to nft"),
        (["--to", "nft", "--flowtable-unchecked"], "--flowtable-unchecked needs --flowtable"),
        (["--to", "nft", "--flowtable", "eth0", "--keep-going"], "cannot be used together"),
        (["--to", "nft", "--flowtable", "eth0", "--against", "rules"], "cannot be used together"),
        (["--to", "nft", "--flowtable", "eth0,"], "is not a device"),
    ],
)
def test_options(words: list[str], message: str, rules: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", rules, *words]) == 2
    assert message in capsys.readouterr().err
