"""Rules of others beside kube-proxy's, with matches and targets that are not modelled: no command stops."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from nfparity.cli import main

KIND = Path(__file__).resolve().parents[1] / "corpus/rulesets/kind-node"

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
]

FOREIGN = {
    "filter": """\
-A INPUT -m limit --limit 5/min -j LOG --log-prefix "in: "
-A INPUT -m mac --mac-source 02:00:00:00:00:99 -j DROP
-A INPUT -p tcp -m tcp --dport 2222 -m hashlimit --hashlimit-upto 3/min --hashlimit-name ssh -j ACCEPT
-A INPUT -p 99 -m bpf --bytecode "4,32 0 0 4294963208,21 0 1 0,6 0 0 1,6 0 0 0" -j REJECT
-A INPUT -p tcp -m tcp --dport 2626 -m cpu --cpu 1 -j DROP
-A FORWARD -m string --string "attack" --algo bm -j DROP
-A OUTPUT -m owner --uid-owner 1000 -j ACCEPT
""",
    "mangle": """\
-A FORWARD -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu
-A POSTROUTING -p udp -m udp --dport 68 -j CHECKSUM --checksum-fill
-A OUTPUT -m length --length 1400:1500 -j DSCP --set-dscp 0x08
""",
}
"""Ten rules of ten extensions. None of them touches a packet of the test, but only the kernel knows."""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """The kind node's rules and those of others behind them."""
    text = (KIND / "rules.iptables-save").read_text()
    for table, more in FOREIGN.items():
        head, found, tail = text.partition(f"*{table}\n")
        assert found
        text = head + found + tail.replace("COMMIT\n", f"{more}COMMIT\n", 1)
    path = tmp_path / "rules"
    path.write_text(text)
    return path


def findings(rules: Path, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str]]:
    words = ["assess", str(rules), "--node", str(KIND / "worker.json"), "--known-only", "--format", "json"]
    main(words)
    (family,) = json.loads(capsys.readouterr().out)["families"]
    assert not family["disputed"]
    told = [one for one in family["assumed"] if "not modelled" in one]
    assert bool(told) == (rules.name == "rules")
    return [(one["id"], one["affects"]) for one in family["findings"]]


def test_an_assessment_finds_the_same_with_them(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone = findings(KIND / "rules.iptables-save", capsys)
    assert alone
    assert findings(rules, capsys) == alone


def test_both_kinds_of_iptables_agree_with_the_simulator(
    rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = ("--node", str(KIND / "worker.json"))
    corpus = tmp_path / "flows.jsonl"
    main(["corpus", "generate", str(rules), *node, "-o", str(corpus)])
    assert main(["corpus", "coverage", str(rules), *node, "--corpus", str(corpus)]) in (0, 1)
    capsys.readouterr()
    words = ["diff", str(rules), *node, "--corpus", str(corpus), "--format", "json"]
    assert main([*words, "--backends", "simulator,iptables-legacy,iptables-nft"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert 0 < report["left_open"] < report["flows"]
    assert {one.partition(": ")[2] for one in report["open_rules"]} == {
        "-m string with a text that may be in several places is not modelled",
        "-m bpf with a program that reads the index of the interface is not modelled",
    }


@pytest.mark.parametrize("command", ["explain", "graph"])
def test_they_are_told(command: str, rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, str(rules)]) == 0
    assert capsys.readouterr().out


def test_a_translation_names_each_once(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", str(rules), "--to", "nft"]) == 2
    told = capsys.readouterr().err
    assert told.count("is not modelled") == 2


def test_a_translation_with_gaps_loads(rules: Path, tmp_path: Path) -> None:
    text = tmp_path / "gaps.nft"
    assert main(["translate", str(rules), "--to", "nft", "--keep-going", "-o", str(text)]) == 1
    subprocess.run(["unshare", "--net", "nft", "--check", "--file", str(text)], check=True)


def test_a_change_between_translations_with_gaps_loads(rules: Path, tmp_path: Path) -> None:
    old, text, change = (tmp_path / name for name in ("old", "old.nft", "change.nft"))
    old.write_text(
        f"{rules.read_text()}*filter\n-A FORWARD -s 10.9.9.9/32 -m limit --limit 1/s -j DROP\n"
        "-A FORWARD -m string --string attack --algo bm -j DROP\nCOMMIT\n"
    )
    assert main(["translate", str(old), "--to", "nft", "--keep-going", "-o", str(text)]) == 1
    words = ["--to", "nft", "--keep-going", "--against", str(old), "-o", str(change)]
    assert main(["translate", str(rules), *words]) == 1
    subprocess.run(["unshare", "--net", "sh", "-ec", f"nft -f {text} && nft -f {change}"], check=True)
