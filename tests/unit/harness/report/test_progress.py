"""Lines about a replay where there is no terminal."""

from __future__ import annotations

import io

from harness.report.progress import PlainProgress, progress


def test_a_line_counts_each_backend_and_estimates_the_rest() -> None:
    plain = PlainProgress(["nftables", "tc-ebpf"])
    plain.tell("simulator", 100, 100)
    plain.tell("nftables", 50, 100)
    assert plain.line(60) == "simulator 100/100, nftables 50/100 flows; 60 s so far, about 3 min 00 s left"
    plain.tell("nftables", 100, 100)
    plain.tell("tc-ebpf", 50, 100)
    assert plain.line(90).endswith("tc-ebpf 50/100 flows; 90 s so far, about 30 s left")


def test_no_estimate_before_there_is_anything_to_base_it_on() -> None:
    plain = PlainProgress(["nftables"])
    assert plain.line(7) == "nothing sent yet, 7 s so far"
    plain.tell("nftables", 0, 661)
    assert plain.line(30) == "nftables 0/661 flows; 30 s so far"


def test_a_short_replay_prints_nothing_outside_a_terminal() -> None:
    stream = io.StringIO()
    with progress(stream, ["nftables"]) as tell:
        tell("nftables", 1, 1)
    assert stream.getvalue() == ""
