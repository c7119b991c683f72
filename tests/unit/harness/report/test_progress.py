"""Progress as lines and as bars."""

from __future__ import annotations

import io
import re

import pytest

from harness.report.progress import PlainProgress, print_lines, progress


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
    assert plain.line(7) == "no flows done yet, 7 s so far"
    plain.tell("nftables", 0, 661)
    assert plain.line(30) == "nftables 0/661 flows; 0.0 flows/s, 30 s so far"


def test_a_line_names_what_is_counted_and_a_slow_rate_is_per_minute() -> None:
    plain = PlainProgress(unit="nodes")
    plain.tell("assessed", 1, 4)
    assert plain.line(30) == "assessed 1/4 nodes; 2.0 nodes/min, 30 s so far, about 90 s left"
    assert plain.line(2) == "assessed 1/4 nodes; 0.5 nodes/s, 2 s so far, about 6 s left"


class Clock:
    """A clock that waits until ``end`` without any time passing."""

    def __init__(self, end: float) -> None:
        self.time = 100.0
        self.end = self.time + end

    def now(self) -> float:
        """Return the time."""
        return self.time

    def wait(self, seconds: float) -> bool:
        """Go on by these seconds; return whether the end comes first."""
        self.time += seconds
        return self.time > self.end


@pytest.mark.parametrize(("lasts", "at"), [(0.9, []), (1.5, [1]), (17, [1, 16]), (47, [1, 16, 31, 46])])
def test_the_first_line_comes_after_a_second_and_others_every_15(lasts: float, at: list[int]) -> None:
    stream, clock = io.StringIO(), Clock(lasts)
    print_lines(stream, PlainProgress(), clock.wait, clock.now)
    lines = [f"nfparity: no flows done yet, {seconds} s so far" for seconds in at]
    assert stream.getvalue().splitlines() == lines


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
