"""Commands without a kernel print the same in every process, whatever the order of sets there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
RULES = "tests/corpus/rulesets/kube-real/rules.iptables-save"
NODE = ("--node", "tests/corpus/rulesets/kube-real/dataplane.json")
SMALLER = "tests/corpus/rulesets/kind-node/rules.iptables-save"
CORPUS = ("--corpus", "tests/corpus/cases-kube-real")
COMMANDS = (
    ("simulate", *CORPUS),
    ("corpus", "generate", SMALLER, "--node", "tests/corpus/rulesets/kind-node/worker.json"),
    ("corpus", "coverage", *CORPUS, "--format", "json"),
    ("corpus", "coverage", *CORPUS, "--format", "html"),
    ("explain", RULES),
    ("explain", RULES, *NODE, "--packet", "tcp 198.51.100.7:40000 > 203.0.113.10:443 in eth0"),
    ("explain", RULES, *NODE, "--packet", "udp 10.244.0.5:1 > 10.96.0.10:53 in cni0", "--format", "json"),
    ("explain", RULES, *NODE, "--packet", "udp 10.244.0.5:1 > 10.96.0.10:53 in cni0", "--format", "html"),
    ("graph", RULES),
    ("graph", RULES, "--format", "svg"),
    ("translate", RULES, "--to", "nft"),
    ("translate", RULES, "--to", "bpf"),
)
ALL = f"""
import sys
from nfparity.cli import main
for words in {json.dumps(COMMANDS)}:
    print(words, main(words))
"""


def printed(hash_seed: str) -> bytes:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", ALL], cwd=ROOT, env=environment, capture_output=True, timeout=120, check=True
    )
    return done.stdout + done.stderr


def test_every_command_prints_the_same_in_every_process() -> None:
    first = printed("1")
    assert first.count(b"\n") > 5000
    assert printed("2") == first
