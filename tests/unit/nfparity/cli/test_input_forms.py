"""Commands read every form, and say what an input hides."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from nfparity.cli import main

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
        group = capsys.readouterr().out.partition("reading RULES:\n")[2]
        return group.partition("\n\n")[0].strip()

    options = told(command)
    assert options == told(["explain"])
    for option in ("--family", "--input", "--table", "--extract", "--ruleset"):
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
    piece = [page, "--extract", "--ruleset", "2"]
    assert main(["corpus", "generate", *piece, "-o", str(flows)]) == 0
    assert '"dport": 8443' in flows.read_text()
    assert main(["corpus", "coverage", *piece, "--corpus", str(flows)]) == 0
    capture = str(tmp_path / "flows.pcap")
    words = ["--rules", page, "--extract", "--ruleset", "2"]
    assert main(["corpus", "export", str(flows), *words, "-o", capture]) == 0
    assert main(["corpus", "import", capture, *words, "-o", str(tmp_path / "again.jsonl")]) == 0
    assert '"dport": 8443' in (tmp_path / "again.jsonl").read_text()
    capsys.readouterr()
    assert main(["diff", page, "--corpus", str(flows), "--backends", "nftables"]) == 2
    assert "expected a table" in capsys.readouterr().err
    assert main(["diff", page, "--extract", "--corpus", str(flows), "--backends", "nftables"]) == 2
    assert "choose one with --ruleset" in capsys.readouterr().err


@pytest.fixture
def listing(tmp_path):
    path = tmp_path / "listing.txt"
    path.write_text(LISTING)
    return str(path)


def test_explain_tells_a_listing_in_words(listing, capsys):
    assert main(["explain", listing]) == 0
    out = capsys.readouterr().out
    assert "unknown for every rule: the listing hides interfaces" in out
    assert "1. line 7: sends to 10.244.0.2:6443 where ip.daddr is 10.96.0.1" in out
    assert "nat POSTROUTING: unknown: chain POSTROUTING is not shown" in out


@pytest.mark.parametrize(
    "command",
    [
        ["translate", "RULES", "--to", "nft"],
        ["translate", "RULES", "--to", "iptables"],
        ["diff", "RULES", "--random", "1", "--backends", "nftables"],
        ["corpus", "generate", "RULES"],
        ["corpus", "coverage", "RULES", "--corpus", "FLOWS"],
        ["corpus", "export", "FLOWS", "--rules", "RULES", "--left", "-o", "out.pcap"],
    ],
    ids=" ".join,
)
def test_what_is_hidden_is_refused_with_the_rule(listing, flows, command, capsys):
    assert main([{"RULES": listing, "FLOWS": flows}.get(word, word) for word in command]) == 2
    err = capsys.readouterr().err
    assert "listing.txt:3" in err
    assert "hides interfaces" in err
    assert "[unknown]" in err


@pytest.fixture
def flows(tmp_path):
    path = tmp_path / "flows.jsonl"
    flow = {"id": "a", "src": "10.0.0.1", "dst": "10.96.0.1", "proto": "tcp", "sport": 1, "dport": 443}
    path.write_text(json.dumps(flow) + "\n")
    return str(path)


def test_simulate_says_what_each_outcome_assumes(listing, flows, capsys):
    assert main(["simulate", listing, "--corpus", flows]) == 0
    out, err = capsys.readouterr()
    assert "unknown: other tables than nat are not shown" in err
    outcomes = json.loads(out)["outcomes"]
    shown = [
        (o["verdict"], o.get("dst"), [(a["line"], a["matches"]) for a in o["assuming"]]) for o in outcomes
    ]
    assert sorted(shown, key=str) == [
        ("forward", "10.244.0.2", [(3, True), (7, True), (1, False)]),
        ("forward", "10.96.0.1", [(3, False), (1, False)]),
        ("forward", "10.96.0.1", [(3, True), (7, False), (1, False)]),
        ("unknown", None, [(1, True)]),
    ]
    hides = {"line": 3, "matches": True, "packet": "in eth0"}
    assert hides.items() <= outcomes[0]["assuming"][0].items()
    assert {o["probability"] for o in outcomes} == {1}
    unknown = next(o for o in outcomes if o["verdict"] == "unknown")
    assert unknown["hidden"] == "line 1: chain POSTROUTING is not shown"


def test_explain_says_what_each_branch_assumes(listing, capsys):
    packet = ["--packet", "tcp 10.0.0.1:1 > 10.96.0.1:443", "--reply"]
    assert main(["explain", listing, *packet, "-v"]) == 0
    out = capsys.readouterr().out
    assert "branch 1 of 4\n  if line 3 matches in eth0 — the listing hides interfaces" in out
    assert "if the hidden part changes nothing — chain POSTROUTING is not shown" in out
    assert "→ no: assumed that line 3 does not match in eth0" in out
    assert "end: unknown — line 1: chain POSTROUTING is not shown" in out
    assert "reply: unknown" in out
    assert main(["explain", listing, *packet, "--format", "json"]) == 0
    branches = json.loads(capsys.readouterr().out)["branches"]
    assert [a["matches"] for a in branches[0]["assuming"]] == [True, True, False]


def test_the_form_can_be_given(listing, capsys):
    assert main(["graph", listing, "--input", "listing", "--table", "nat"]) == 0
    assert "line 3 calls KUBE-SERVICES: 1 rule" in capsys.readouterr().out
    assert main(["graph", listing, "--input", "save"]) == 2
    assert "expected a table" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ruleset", "1"], "needs --extract"),
        (["--extract", "--ruleset", "2"], "no ruleset 2 on this page"),
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
def test_packets_go_through_every_listing_of_the_documents(name, tmp_path, capsys):
    """One for each address that a rule sends to; each of its outcomes says what it assumes."""
    path = _seed(name)
    targets = re.findall(r"\s(10\.\d+\.\d+\.\d+)\s.*dpt:(\d+|https)", Path(path).read_text())
    lines = [
        json.dumps({"id": str(n), "src": "10.3.3.3", "dst": a, "proto": "tcp", "sport": 1,
                    "dport": 443 if p == "https" else int(p)})
        for n, (a, p) in enumerate([*targets, ("10.96.0.10", "53")])
    ]  # fmt: skip
    flows = tmp_path / "flows.jsonl"
    flows.write_text("\n".join(lines))
    for piece in range(1, len(PRINTED[name]) + 1):
        status = main(["simulate", "--extract", path, "--ruleset", str(piece), "--corpus", str(flows)])
        out, err = capsys.readouterr()
        if "match-set" in err:  # of ipsets whose members the page does not show
            assert (status, out) == (2, "")
            continue
        assert status == 0
        results = [json.loads(line) for line in out.splitlines()]
        assert len(results) == len(lines)
        for result in results:
            certain = [o for o in result["outcomes"] if not o.get("assuming")]
            assert sum(o["probability"] for o in certain) == 1 or len(result["outcomes"]) > 1


@pytest.mark.parametrize("name", [name for name, printed in PRINTED.items() if printed])
def test_every_listing_of_the_documents_is_drawn(name, capsys):
    assert main(["graph", "--extract", _seed(name)]) == 0
    drawn = capsys.readouterr().out
    assert "calls" in drawn or "no rule jumps to it" in drawn
