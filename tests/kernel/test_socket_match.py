"""``-m socket`` and its translation beside each other, with sockets that listen."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from translate.ir import Family
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]

OPTIONS = ("", "--transparent", "--nowildcard", "--transparent --nowildcard")
RULES = "\n".join(
    (
        "*mangle",
        *(
            f"-A PREROUTING -p udp -m socket {words} -m nfacct --nfacct-name a{n}"
            for n, words in enumerate(OPTIONS)
        ),
        "COMMIT",
        "",
    )
)

SCRIPT = """
import json, socket, subprocess, sys
def run(*words, text=None):
    return subprocess.run(words, input=text, text=True, check=True, capture_output=True).stdout
rules, nft, accounts = json.loads(sys.argv[1])
run("ip", "link", "set", "lo", "up")
run("iptables-legacy-restore", text=rules)
run("nft", "-f", "-", text=nft)
def listen(address, port, transparent):
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_IP, 19, transparent)
    made.bind((address, port))
    return made
kept = [listen("127.0.0.1", 1001, 0), listen("0.0.0.0", 1002, 0),
        listen("127.0.0.1", 1003, 1), listen("0.0.0.0", 1004, 1)]
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
found = []
for port in range(1000, 1005):
    sender.sendto(b"x", ("127.0.0.1", port))
    found.append((run("iptables-legacy-save", "-c", "-t", "mangle"), run("nft", "list", "ruleset")))
print(json.dumps(found))
"""


def test_the_kernel_finds_the_same_sockets() -> None:
    legacy = RULES.replace(" -m nfacct", " -m comment").replace("--nfacct-name", "--comment")
    ruleset = read_ruleset(RULES.encode(), name="rules", family=Family.IP)
    text = emit(lower(ruleset, level=2)).text
    asked = json.dumps((legacy, text, len(OPTIONS)))
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", SCRIPT, asked], capture_output=True, text=True, check=True
    )
    counts = []
    for saved, listed in json.loads(done.stdout):
        legacy_counts = [int(n) for n in re.findall(r"^\[(\d+):\d+\] -A", saved, re.MULTILINE)]
        ours = {
            m[1]: int(m[2])
            for m in re.finditer(r"counter nfacct_a(\d) \{.*?packets (\d+)", listed, re.DOTALL)
        }
        assert [ours[str(n)] for n in range(len(OPTIONS))] == legacy_counts
        counts.append(legacy_counts)
    # nobody, 127.0.0.1, any address, and both with IP_TRANSPARENT: one packet more for each that matches
    assert counts == [[0, 0, 0, 0], [1, 0, 1, 0], [1, 0, 2, 0], [2, 1, 3, 1], [2, 1, 4, 2]]
