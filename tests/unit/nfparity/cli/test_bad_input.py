"""Bad rules in every form, through every command that reads them: the place, exit status 2, no traceback."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from nfparity.cli import main

TOP = "*filter\n:FORWARD ACCEPT [0:0]\n"
CHAIN = "Chain FORWARD (policy ACCEPT)\n"
COLUMNS = "target     prot opt source               destination\n"

# What is wrong: the bytes, the options, line and column (0: not told), and some of the message.
BAD: dict[str, tuple[bytes, tuple[str, ...], int, int, str]] = {
    "save without COMMIT": (f"{TOP}-A FORWARD -j DROP\n".encode(), (), 3, 19, 'no "COMMIT"'),
    "save cut in a rule": (f"{TOP}-A FORWARD -s 10.0.0.1 -j".encode(), (), 3, 26, "needs a value"),
    "save cut in a quote": (
        f'{TOP}-A FORWARD -m comment --comment "a b'.encode(), (), 3, 33, "never closed",
    ),
    "rules of the other family": (
        f"{TOP}-A FORWARD -s fd00::1/128 -j DROP\nCOMMIT\n".encode(), ("--family", "ip"), 3, 15, "fd00::1",
    ),
    "rules of both families": (
        f"{TOP}-A FORWARD -s 10.0.0.1/32 -j DROP\n-A FORWARD -s fd00::1/128 -j DROP\nCOMMIT\n".encode(),
        (), 4, 15, "fd00::1",
    ),
    "a chain twice": (f"{TOP}:A - [0:0]\n:A - [0:0]\nCOMMIT\n".encode(), (), 4, 2, "declared twice"),
    "a chain that is not there": (f"{TOP}-A NOWHERE -j DROP\nCOMMIT\n".encode(), (), 3, 4, "not declared"),
    "a jump to no chain": (f"{TOP}-A FORWARD -j NOWHERE\nCOMMIT\n".encode(), (), 3, 15, "NOWHERE"),
    "iptables -S of nonsense": (
        b"-P FORWARD ACCEPT\n-A FORWARD --nonsense 3 -j DROP\n", (), 2, 12, "nonsense",
    ),
    "iptables -S of another table": (b"-P PREROUTING ACCEPT\n", (), 1, 4, "no built-in chain"),
    "a fragment that deletes by number": (
        b"*nat\n:A - [0:0]\n-D A 3\nCOMMIT\n", (), 3, 6, "by number",
    ),
    "a listing cut behind a header": (CHAIN.encode(), (), 1, 1, "cut after this header"),
    "a listing cut in a row": (
        f"{CHAIN}{COLUMNS}DROP       all  --  10.0.0.0/8".encode(), (), 3, 31, "before its destination",
    ),
    "a listing with a damaged header": (f"Chain FORWARD (pol\n{COLUMNS}".encode(), (), 1, 1, "damaged"),
    "a listing without a header": (
        b"DROP       all  --  10.0.0.0/8   anywhere\n", ("--input", "listing"), 1, 1, "without the header",
    ),
    "rows alone": (b"DROP       all  --  10.0.0.0/8   anywhere\n", (), 1, 1, "expected a table"),
    "a listing with a chain twice": (
        f"{CHAIN}{COLUMNS}\n{CHAIN}{COLUMNS}DROP all -- anywhere anywhere\n".encode(),
        (), 4, 1, "listed twice with a difference",
    ),
    "garbage": (bytes(range(1, 256)) * 40, (), 1, 1, "expected a table"),
    "a NUL": (f"{TOP}-A FORWARD -j \0DROP\nCOMMIT\n".encode(), (), 3, 15, "byte 0"),
    "nothing": (b"", (), 0, 0, "no rules"),
    "blank lines and comments": (b"\n# nothing\n\n", (), 0, 0, "no rules"),
    "a page without rules": (b"Dear all,\nsee below.\n", ("--extract",), 0, 0, "no listing and no dump"),
    "a huge line": (f"{TOP}-A FORWARD -j {'A' * 20000}\nCOMMIT\n".encode(), (), 3, 10239, "20014 characters"),
}  # fmt: skip

COMMANDS = {
    "translate": ["translate", "RULES", "--to", "nft"],
    "simulate": ["simulate", "RULES", "--corpus", "FLOWS"],
    "diff": ["diff", "RULES", "--corpus", "FLOWS", "--backends", "nftables"],
    "random diff": ["diff", "RULES", "--random", "3", "--backends", "nftables"],
    "explain": ["explain", "RULES"],
    "explain a packet": ["explain", "RULES", "--packet", "udp 10.0.0.1:1 > 10.0.0.2:53"],
    "graph": ["graph", "RULES"],
    "requires": ["requires", "RULES", "--on", "debian-12"],
    "generate": ["corpus", "generate", "RULES"],
    "coverage": ["corpus", "coverage", "RULES", "--corpus", "FLOWS"],
    "import": ["corpus", "import", "capture.pcap", "--rules", "RULES"],
    "export": ["corpus", "export", "FLOWS", "--rules", "RULES", "-o", "/nowhere/out.pcap"],
}


@pytest.fixture
def flows(tmp_path):
    path = tmp_path / "flows.jsonl"
    flow = {"id": "a", "src": "10.0.0.1", "dst": "10.0.0.2", "proto": "tcp", "sport": 1, "dport": 443}
    path.write_text(json.dumps(flow) + "\n")
    return str(path)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("wrong", BAD)
def test_it_is_told_with_its_place(wrong, command, flows, tmp_path, capsys):
    data, options, line, column, message = BAD[wrong]
    path = tmp_path / "given.rules"
    path.write_bytes(data)
    words = [{"RULES": str(path), "FLOWS": flows}.get(word, word) for word in COMMANDS[command]]
    assert main([*words, *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err) < 20_000
    assert message in err
    assert err.startswith(f"nfparity: {path}:{line}:{column}: " if column else f"nfparity: {path}:"), err
    if column and "byte 0" not in err and "characters" not in err:
        assert re.search(r"\n *\^$", err, re.MULTILINE), err


@pytest.mark.parametrize("action", ["check", "record"])
@pytest.mark.parametrize("wrong", [w for w, (_, options, *_) in BAD.items() if not options])
def test_it_is_told_of_a_case(wrong, action, flows, tmp_path, capsys):
    data, _, line, column, message = BAD[wrong]
    case = tmp_path / "case"
    case.mkdir()
    (case / "case.toml").write_text(
        'purpose = "p"\norigin = "o"\nrules = "given.rules"\nnode = "node.json"\n'
    )
    (case / "node.json").write_text('{"interfaces": {"eth0": ["10.0.0.3/24"]}}')
    (case / "given.rules").write_bytes(data)
    Path(flows).rename(case / "flows.jsonl")
    assert main(["corpus", action, str(case)]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert f"given.rules:{line}:{column}: " in err if column else "given.rules" in err
    assert not (case / "expect.jsonl").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_readable_file(command, flows, tmp_path, capsys):
    paths = [str(tmp_path), str(tmp_path / "missing"), "/proc/self/mem", "a\0b"]
    if os.geteuid() != 0:
        (tmp_path / "secret").touch(mode=0)
        paths.append(str(tmp_path / "secret"))
    for path in paths:
        words = [{"RULES": path, "FLOWS": flows}.get(word, word) for word in COMMANDS[command]]
        assert main(words) == 2, path
        out, err = capsys.readouterr()
        assert (out, err.startswith("nfparity: ")) == ("", True)


LATIN = b'*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m comment --comment "Z\xfcrich" -j DROP\nCOMMIT\n'


@pytest.mark.parametrize(
    "command", [name for name in COMMANDS if name not in ("diff", "random diff", "import")]
)
def test_a_comment_in_latin_1_is_no_fault(command, flows, tmp_path, capsysbinary):
    path = tmp_path / "given.rules"
    path.write_bytes(LATIN)
    out = str(tmp_path / "out.pcap")
    words = {"RULES": str(path), "FLOWS": flows, "/nowhere/out.pcap": out}
    assert main([words.get(word, word) for word in COMMANDS[command]]) in (0, 1)
    assert b"Traceback" not in capsysbinary.readouterr().err


def test_a_comment_in_latin_1_is_written_as_it_was(tmp_path, capsysbinary):
    path, other = tmp_path / "given.rules", tmp_path / "other.rules"
    path.write_bytes(LATIN)
    assert main(["translate", str(path), "--to", "iptables", "-o", str(other)]) == 0
    assert other.read_bytes() == LATIN
    assert main(["translate", str(path), "--to", "iptables"]) == 0
    assert capsysbinary.readouterr().out == LATIN
