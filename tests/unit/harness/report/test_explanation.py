"""Explanations: the verdict and the deciding rules first, and lines that fit a terminal."""

from __future__ import annotations

import io
import re

import pytest

from backends.model.contract import Job
from harness.explain.explain import Explanation, explain
from harness.explain.packetspec import parse_packet
from harness.report.explanation import print_explanation

PACKET = "udp 10.244.0.3:40000 > 10.96.0.10:53 in dns3"


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


@pytest.fixture
def hairpin(worker: Job) -> Explanation:
    return explain(worker, parse_packet(PACKET, worker.node))


def printed(explanation: Explanation, stream: io.StringIO, *, whole_path: bool = False) -> str:
    print_explanation(explanation, stream, with_reply=False, every_rule=False, whole_path=whole_path)
    return stream.getvalue()


def test_the_verdict_and_the_deciding_rules_come_first(hairpin: Explanation) -> None:
    branches = printed(hairpin, io.StringIO()).split("\n\nbranch ")
    lines = branches[1].splitlines()
    assert lines[1].startswith(
        "verdict: forward — left on dns3 as 10.244.0.1:a port of 1024-65535 > 10.244.0.3:53"
    )
    rules = lines[2 : lines.index("why")]
    assert [line.split(":")[0].strip() for line in rules[::2]] == ["80", "85", "37", "82", "83"]
    assert rules[3] == "        → yes: sends to 10.244.0.3:53"
    assert "PREROUTING:" not in branches[1]


def test_the_path_is_shown_after_them_if_wanted(hairpin: Explanation) -> None:
    text = printed(hairpin, io.StringIO(), whole_path=True)
    assert text.index("verdict: ") < text.index("\nwhy\n") < text.index("\npath\n  PREROUTING: ")
    assert "→ no: test failed: ip.saddr is 10.244.0.4; here it is 10.244.0.3" in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit_the_terminal(width: int, hairpin: Explanation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = re.sub("\x1b\\[[0-9;]*m", "", printed(hairpin, Terminal(), whole_path=True)).splitlines()
    assert max(map(len, lines)) > width * 0.8
    assert [line for line in lines if len(line) > width and " " in line.strip()] == []


def test_colours_are_for_terminals_that_want_them(
    hairpin: Explanation, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("TERM", "xterm-256color"), ("COLUMNS", "200")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1;32mverdict: forward" in printed(hairpin, Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[1;32m" not in printed(hairpin, Terminal())
    assert "\x1b" not in printed(hairpin, io.StringIO())
