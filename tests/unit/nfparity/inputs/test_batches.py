"""Packets of captures as inputs of commands: the flow of a frame, and the frames that are left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.model.node import node_from_json
from harness.corpus.formats.jsonlines import read_flows
from harness.corpus.formats.pcap import export_capture
from tests.lab.commands import run_command

KIND = Path(__file__).parents[4] / "tests/corpus/rulesets/kind-node"
RULES = (str(KIND / "rules.iptables-save"), "--node", str(KIND / "worker.json"))
FLOWS = b"""\
{"id": "a", "in": "dns3", "src": "10.244.0.3", "dst": "10.96.0.10", "proto": "udp", "sport": 9, "dport": 53}
{"id": "b", "in": "pod5", "src": "10.244.0.5", "dst": "10.96.0.1", "proto": "tcp", "sport": 9, "dport": 443}
{"id": "six", "in": "eth0", "src": "fc00::9", "dst": "fc00::2", "proto": "udp", "sport": 1, "dport": 2}
"""
SIX = '{"interfaces": {"eth0": ["172.18.0.2/16", "fc00::2/64"], "dns3": ["10.244.0.1/32"], "pod5": []}}'


@pytest.fixture
def capture(tmp_path: Path) -> str:
    node = node_from_json(SIX, name="node")
    path = tmp_path / "packets.pcap"
    export_capture(path, read_flows(FLOWS, name="flows", node=node))
    return str(path)


def test_a_frame_of_a_capture_is_explained(capture: str) -> None:
    first = run_command("explain", *RULES, "--pcap", capture)
    second = run_command("explain", *RULES, "--pcap", capture, "--frame", "2")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert first.stdout.startswith("packet udp 10.244.0.3:9 > 10.96.0.10:53, enters at dns3;")
    assert second.stdout.startswith("packet tcp 10.244.0.5:9 > 10.96.0.1:443")


def test_frames_that_are_left_out_are_counted(capture: str) -> None:
    wanted = f"{capture}: left out 1 frame (3): IPv6, another address family than the rules'"
    for words in (("explain", *RULES, "--pcap", capture), ("simulate", *RULES, "--corpus", capture)):
        done = run_command(*words)
        assert done.returncode == 0, done.stderr
        assert wanted in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--frame", "3"), "frame 3 begins no flow; these do: 1, 2"),
        (("--packet", "udp 10.244.0.3 > 10.96.0.10:53"), "--packet and --pcap both give the packet"),
    ],
)
def test_wrong_frames(words: tuple[str, ...], said: str, capture: str) -> None:
    done = run_command("explain", *RULES, "--pcap", capture, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert run_command("explain", *RULES, "--frame", "1").returncode == 2
