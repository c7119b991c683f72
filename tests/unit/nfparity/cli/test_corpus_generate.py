from __future__ import annotations

from pathlib import Path

import pytest

from nfparity.cli.main import main

RULES = """\
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
-A FORWARD -p tcp -j ACCEPT
-A FORWARD -p tcp -m tcp --dport 80 -j DROP
COMMIT
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.iptables-save"
    path.write_text(RULES)
    return path


def test_flows_and_what_cannot_be_reached(
    rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "flows.jsonl"
    assert main(["corpus", "generate", str(rules), "-o", str(out)]) == 0
    said = capsys.readouterr().err
    assert "hit 1 of 2 rules" in said
    assert f"cannot be reached: {rules}:5:" in said
    assert "line 4, which comes first, takes every such packet" in said
    assert main(["corpus", "coverage", str(rules), "--corpus", str(out)]) == 0


def test_a_rule_without_a_flow_is_an_exit_status(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Broadcasts are not forwarded: no proof knows that, and no packet comes there.
    rules.write_text(RULES.replace("-p tcp -j ACCEPT", "-m addrtype --dst-type BROADCAST -j DROP"))
    assert main(["corpus", "generate", str(rules)]) == 1
    shown = capsys.readouterr()
    assert f"no flow found: {rules}:4:" in shown.err
    assert "packets reached it, and failed one of: fib.daddr.type is BROADCAST" in shown.err
    assert all(line.startswith('{"id": ') for line in shown.out.splitlines())


def test_help_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["corpus", "generate", "--help"])
    assert "nfparity corpus generate rules.iptables-save" in capsys.readouterr().out


def test_an_exhaustive_corpus_hits_the_same_rules(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ports = "".join(
        f"-A PREROUTING -p tcp -m tcp --dport {1000 + 10 * n} -j DNAT --to-destination 10.1.{n}.9:80\n"
        for n in range(12)
    )
    rules.write_text(f"*nat\n:PREROUTING ACCEPT [0:0]\n{ports}COMMIT\n")
    written = []
    for options in ([], ["--exhaustive"]):
        assert main(["corpus", "generate", str(rules), *options]) == 0
        shown = capsys.readouterr()
        assert "hit 12 of 12 rules" in shown.err
        written.append(shown.out)
    assert written[0] != written[1]


def test_a_rule_that_is_like_one_without_a_flow_says_so(
    rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    never = "".join(f"-A FORWARD -d 10.{n}.0.1/32 -o nil0 -j DROP\n" for n in range(5))
    rules.write_text(RULES.replace("-A FORWARD -p tcp -j ACCEPT\n", never))
    assert main(["corpus", "generate", str(rules)]) == 1
    said = capsys.readouterr().err
    assert said.count("no route of the node leads to nil0") == 2
    assert said.count(f"no flow was searched for it, because it differs from {rules}:4") == 3
