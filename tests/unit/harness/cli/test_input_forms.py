"""Commands read every form, and say what an input hides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import main

SEEDS = Path(__file__).parents[4].parent / "shared/seeds"
LISTING = """\
Chain PREROUTING (policy ACCEPT)
target         prot opt source      destination
KUBE-SERVICES  all  --  anywhere    anywhere

Chain KUBE-SERVICES (1 references)
target     prot opt source      destination
DNAT       tcp  --  anywhere    10.96.0.1     tcp dpt:https to:10.244.0.2:6443
"""

# What each document prints: rulesets on the page, and for each the rules that stand there.
PRINTED = {
    "000_4cd246fafbd9d0ba.txt": [15],
    "001_0e1a3ec3ffcf694a.txt": [5, 0],
    "002_6d8619ab0cb2e595.txt": [64, 3],
    "003_4145b0b0b4e82ef6.txt": [11],
    "004_139b86dd954fc693.txt": [],
}


COMMANDS = (
    ["translate"],
    ["simulate"],
    ["diff"],
    ["explain"],
    ["graph"],
    ["corpus", "generate"],
    ["corpus", "coverage"],
    ["corpus", "import"],
    ["corpus", "export"],
)
"""Those that read rules."""


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_reads_rules_in_the_same_ways(command, capsys):
    def told(words):
        with pytest.raises(SystemExit):
            main([*words, "--help"])
        group = capsys.readouterr().out.partition("how RULES are read:\n")[2]
        return group.partition("\n\n")[0].strip()

    options = told(command)
    assert options == told(["explain"])
    for option in ("--family", "--input", "--table", "--extract", "--piece"):
        assert option in options


@pytest.fixture
def page(tmp_path):
    """Prose, and in it the rules of two families, which no command can read as they are."""
    path = tmp_path / "page.txt"
    head = ":PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n"
    first = (
        "-A PREROUTING -d 10.96.0.1/32 -p tcp -m tcp --dport 443 -j DNAT --to-destination 10.244.0.2:6443\n"
    )
    second = "-A PREROUTING -d fd00::1/128 -j DROP\n"
    path.write_text(
        f"On the node:\n*nat\n{head}{first}COMMIT\nand\n*nat\n{head}{first.replace('443', '8443', 1)}COMMIT\n"
        f"and\n*filter\n:FORWARD DROP [0:0]\n{second.replace('PREROUTING', 'FORWARD')}COMMIT\n"
    )
    return str(path)


def test_diff_and_corpus_take_a_piece_of_a_page(page, tmp_path, capsys):
    flows = tmp_path / "flows.jsonl"
    piece = [page, "--extract", "--piece", "2"]
    assert main(["corpus", "generate", *piece, "-o", str(flows)]) == 0
    assert '"dport": 8443' in flows.read_text()
    assert main(["corpus", "coverage", *piece, "--corpus", str(flows)]) == 0
    capture = str(tmp_path / "flows.pcap")
    words = ["--rules", page, "--extract", "--piece", "2"]
    assert main(["corpus", "export", str(flows), *words, "-o", capture]) == 0
    assert main(["corpus", "import", capture, *words, "-o", str(tmp_path / "again.jsonl")]) == 0
    assert '"dport": 8443' in (tmp_path / "again.jsonl").read_text()
    capsys.readouterr()
    assert main(["diff", page, "--corpus", str(flows), "--backends", "nftables"]) == 2
    assert "expected a table" in capsys.readouterr().err
    assert main(["diff", page, "--extract", "--corpus", str(flows), "--backends", "nftables"]) == 2
    assert "choose one with --piece" in capsys.readouterr().err


@pytest.fixture
def listing(tmp_path):
    path = tmp_path / "listing.txt"
    path.write_text(LISTING)
    return str(path)


def test_explain_tells_a_listing_in_words(listing, capsys):
    assert main(["explain", listing]) == 0
    out = capsys.readouterr().out
    assert "unknown of every rule: the listing hides interfaces" in out
    assert "1. line 7: sends to 10.244.0.2:6443 where ip.daddr is 10.96.0.1" in out
    assert "nat POSTROUTING: unknown: chain POSTROUTING is not shown" in out


@pytest.mark.parametrize(
    "command", [["translate", "--to", "nft"], ["explain", "--packet", "tcp 10.0.0.1:1 > 10.96.0.1:443"]]
)
def test_what_is_hidden_is_refused_with_the_rule(listing, command, capsys):
    assert main([command[0], listing, *command[1:]]) == 2
    err = capsys.readouterr().err
    assert "listing.txt:3" in err
    assert "hides interfaces" in err
    assert "[unknown]" in err


def test_simulate_refuses_and_reports_what_is_hidden(listing, tmp_path, capsys):
    flows = tmp_path / "flows.jsonl"
    flow = {"id": "a", "src": "10.0.0.1", "dst": "10.96.0.1", "proto": "tcp", "sport": 1, "dport": 443}
    flows.write_text(json.dumps(flow) + "\n")
    assert main(["simulate", listing, "--corpus", str(flows)]) == 2
    err = capsys.readouterr().err
    assert "unknown: other tables than nat are not shown" in err
    assert "[unknown]" in err


def test_the_form_can_be_given(listing, capsys):
    assert main(["graph", listing, "--input", "listing", "--table", "nat"]) == 0
    assert "line 3 calls KUBE-SERVICES: 1 rule" in capsys.readouterr().out
    assert main(["graph", listing, "--input", "save"]) == 2
    assert "expected a table" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--piece", "1"], "needs --extract"),
        (["--extract", "--piece", "2"], "there is no piece 2"),
        (["--extract", "--input", "save"], "--input cannot be given"),
    ],
)
def test_options_that_do_not_fit(listing, options, message, capsys):
    assert main(["explain", listing, *options]) == 2
    assert message in capsys.readouterr().err


def _seed(name: str) -> str:
    path = SEEDS / name
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return str(path)


@pytest.mark.parametrize("name", PRINTED)
def test_every_listing_of_the_documents_is_explained(name, capsys):
    path = _seed(name)
    status = main(["explain", "--extract", path, "--format", "json"])
    out, err = capsys.readouterr()
    if not PRINTED[name]:
        assert status == 2
        assert "no listing and no dump on this page" in err
        return
    assert status == 0
    pieces = json.loads(out)
    lines = Path(path).read_text().split("\n")
    shown = []
    for piece in pieces:
        told = [rule for rule in piece["rules"] if rule["action"] or rule["tests"]]
        assert all(lines[rule["line"] - 1].strip() for rule in told)
        shown.append(len(told))
    assert shown == PRINTED[name]


@pytest.mark.parametrize("name", [name for name, printed in PRINTED.items() if printed])
def test_every_listing_of_the_documents_is_drawn(name, capsys):
    assert main(["graph", "--extract", _seed(name)]) == 0
    assert "calls" in capsys.readouterr().out
