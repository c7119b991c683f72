"""Chains that call each other many times over, and chains in a long line: an answer or a clear error, soon.

Thirty chains, of which each calls the next one twice, are walked 2**30 times. Whoever follows the calls one
by one comes to no end, the kernel included.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from backends.simulator.chance import chooser
from backends.simulator.walk import plain
from nfparity.cli.main import main

NODE = (
    '{"interfaces": {"eth0": ["192.0.2.2/24"], "eth1": ["198.51.100.1/24"]},'
    ' "routes": [{"dst": "default", "via": "192.0.2.1", "dev": "eth0"}]}'
)
FLOW = (
    '{"id": "one", "in": "eth0", "src": "192.0.2.9", "dst": "198.51.100.7", "proto": "tcp", "sport": 4000,'
    ' "dport": 81}\n'
)
PACKET = "tcp 192.0.2.9:4000 > 198.51.100.7:81 in eth0"

ALL_TWICE = "-A @ -j ^\n-A @ -j ^\n"
TCP_TWICE = "-A @ -p tcp -j ^\n-A @ -j ^\n"
MARKED = "-A @ -j ^\n-A @ -j MARK --set-xmark 0x1/0x0\n-A @ -j ^\n"
CHANCE = "-A @ -m statistic --mode random --probability 0.5 -j ^\n-A @ -j ^\n"
LINE = "-A @ -p tcp -m tcp --dport 81 -j DROP\n-A @ -j ^\n"


def levels(rules: str, count: int = 30) -> str:
    """Rules of ``count`` chains: ``@`` is the chain, ``^`` the next one."""
    declared = "".join(f":C{n} - [0:0]\n" for n in range(count + 1))
    body = "".join(rules.replace("@", f"C{n}").replace("^", f"C{n + 1}") for n in range(count))
    return f"*mangle\n:FORWARD ACCEPT [0:0]\n{declared}-A FORWARD -j C0\n{body}COMMIT\n"


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that are met in a moment."""
    monkeypatch.setattr(plain, "_MOST_JUMPS", 20_000)
    monkeypatch.setattr(chooser, "_MOST_CHOICES", 1000)


COMMANDS: dict[str, tuple[str, ...]] = {
    "simulate": ("simulate", "RULES", "--node", "NODE", "--corpus", "FLOWS"),
    "explain": ("explain", "RULES", "--node", "NODE", "--packet", PACKET),
    "told": ("explain", "RULES"),
    "generate": ("corpus", "generate", "RULES", "--node", "NODE"),
    "coverage": ("corpus", "coverage", "RULES", "--node", "NODE", "--corpus", "FLOWS"),
    "graph": ("graph", "RULES"),
    "assess": ("assess", "RULES", "--node", "NODE"),
    "iptables": ("translate", "RULES", "--to", "iptables"),
    **{f"nft{n}": ("translate", "RULES", "--to", "nft", f"-O{n}") for n in range(3)},
    **{f"bpf{n}": ("translate", "RULES", "--to", "bpf", f"-O{n}") for n in range(3)},
}


def run(rules: str, words: tuple[str, ...], folder: Path) -> int:
    names = {"RULES": rules, "NODE": NODE, "FLOWS": FLOW}
    for name, text in names.items():
        (folder / name).write_text(text)
    return main([str(folder / word) if word in names else word for word in words])


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "rules", [ALL_TWICE, TCP_TWICE, MARKED, CHANCE], ids=("all", "tcp", "mark", "chance")
)
def test_thirty_levels(rules: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = run(levels(rules), COMMANDS[command], tmp_path)
    message = capsys.readouterr().err
    if status == 2:
        assert message.startswith("nfparity: ")
    else:
        assert status == 0 or (status, command) == (1, "coverage")
    if command in ("told", "graph", "iptables"):
        assert status == 0


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("command", ["explain", "generate", "coverage"])
def test_a_walk_without_end_is_named(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(levels(TCP_TWICE), COMMANDS[command], tmp_path) == 2
    message = capsys.readouterr().err
    assert re.search(r"/RULES:\d+: the packets of one flow jump more than 20000 times", message)


def test_a_trace_has_an_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.import_module("backends.simulator.trace"), "_MOST_EVENTS", 1000)
    assert run(levels(TCP_TWICE, 12), COMMANDS["explain"], tmp_path) == 2
    assert "more than 1000 events" in capsys.readouterr().err


def test_an_ordinary_walk_is_told_in_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(levels(TCP_TWICE, 6), (*COMMANDS["explain"], "--all"), tmp_path) == 0
    told = capsys.readouterr().out
    assert sum("-j C" in line for line in told.splitlines()) == 1 + sum(2 * 2**n for n in range(6))


@pytest.mark.parametrize("command", [c for c in COMMANDS if c not in ("generate", "assess")])
def test_a_line_of_two_thousand_chains(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run(levels(LINE, 2000), COMMANDS[command], tmp_path)
    assert status == (2 if command.startswith("nft") else command == "coverage")


def test_a_corpus_for_a_line_of_chains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(levels(LINE, 200), COMMANDS["generate"], tmp_path) == 1  # for some rules no flow is found
    assert '-forward-hit"' in capsys.readouterr().out
