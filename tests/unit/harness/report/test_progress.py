"""Lines about a replay where there is no terminal."""

from __future__ import annotations

import io
import re

import pytest

from harness.report.progress import PlainProgress, progress


def test_a_line_counts_each_backend_and_estimates_the_rest() -> None:
    plain = PlainProgress(["nftables", "tc-ebpf"])
    plain.tell("simulator", 100, 100)
    plain.tell("nftables", 50, 100)
    assert plain.line(60) == (
        "simulator 100/100, nftables 50/100 flows; 2.5 flows/s, 60 s so far, about 3 min 00 s left"
    )
    plain.tell("nftables", 100, 100)
    plain.tell("tc-ebpf", 50, 100)
    assert plain.line(90).endswith("tc-ebpf 50/100 flows; 2.8 flows/s, 90 s so far, about 30 s left")


def test_no_estimate_before_there_is_anything_to_base_it_on() -> None:
    plain = PlainProgress(["nftables"])
    assert plain.line(7) == "nothing sent yet, 7 s so far"
    plain.tell("nftables", 0, 661)
    assert plain.line(30) == "nftables 0/661 flows; 0.0 flows/s, 30 s so far"


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


def test_a_bar_has_rate_and_remaining_time_and_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("TERM", "xterm"), ("COLUMNS", "80"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    stream = Terminal()
    with progress(stream) as tell:
        tell("kube-proxy-nftables", 1234, 3260)
    lines = re.sub("\x1b\\[[?0-9;]*[A-Za-z]", "", stream.getvalue()).replace("\r", "\n").split("\n")
    (shown,) = {line.rstrip() for line in lines if "1234/3260" in line}
    assert shown.startswith("kube-proxy-nftables ")
    assert "flows/s" in shown
    assert " left " in shown
    assert len(shown) <= 80


def test_a_short_replay_prints_nothing_outside_a_terminal() -> None:
    stream = io.StringIO()
    with progress(stream, ["nftables"]) as tell:
        tell("nftables", 1, 1)
    assert stream.getvalue() == ""
