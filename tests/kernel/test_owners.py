"""``-m owner`` and its translation beside each other, for sockets that a process has, had, or will have."""

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

pytestmark = [pytest.mark.kernel, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]

MATCHES = (
    *(
        "--socket-exists",
        "! --socket-exists",
        "--uid-owner 0",
        "! --uid-owner 0",
        "--gid-owner 0",
        "! --gid-owner 5",
    ),
    *("--uid-owner 0 --socket-exists", "! --uid-owner 5 ! --socket-exists"),
)
STAGES = ("datagram", "error", "reset", "connect", "early data", "accept", "late data")

_SCRIPT = """
import json, socket, subprocess, sys, time
legacy, ours = json.load(sys.stdin)
def run(*words, text=None):
    return subprocess.run(words, input=text, text=True, check=True, capture_output=True).stdout
run("ip", "link", "set", "lo", "up")
run("iptables-legacy-restore", text=legacy)
run("nft", "-f", "-", text=ours)
states = []
def stage():
    time.sleep(0.2)
    states.append((run("iptables-legacy-save", "-c", "-t", "mangle"), run("nft", "list", "ruleset")))
other, sender = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
other.bind(("127.0.0.1", 5000))
sender.sendto(b"", ("127.0.0.1", 5000))
stage()
sender.sendto(b"", ("127.0.0.1", 9))
stage()
assert socket.socket().connect_ex(("127.0.0.1", 9))
stage()
server, client = socket.socket(), socket.socket()
server.bind(("127.0.0.1", 4000))
server.listen()
client.connect(server.getsockname())
stage()
client.send(b"x")
stage()
accepted = server.accept()[0]
accepted.recv(1)
accepted.send(b"x")
client.recv(1)
stage()
accepted.close()
client.send(b"x")
stage()
print(json.dumps(states))
"""


@pytest.mark.parametrize("level", [0, 2])
def test_the_same_packets_match(level: int) -> None:
    lines = [f"-A OUTPUT -m owner {words} -m nfacct --nfacct-name a{n}." for n, words in enumerate(MATCHES)]
    rules = "\n".join(("*mangle", *lines, "COMMIT", ""))
    legacy = rules.replace(" -m nfacct", " -m comment").replace("--nfacct-name", "--comment")
    text = emit(lower(read_ruleset(rules.encode(), name="rules", family=Family.IP), level=level)).text
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", _SCRIPT],
        input=json.dumps((legacy, text)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    states = json.loads(done.stdout)
    without = {}
    for stage, (saved, listed) in zip(STAGES, states, strict=True):
        counts = {int(n): int(c) for c, n in re.findall(r"^\[(\d+):.*--comment \"?a(\d+)\.", saved, re.M)}
        found = re.findall(r"counter nfacct_a(\d+)\S* \{.*?packets (\d+)", listed, re.DOTALL)
        ours = {int(n): int(c) for n, c in found}
        pairs = {words: (counts[n], ours.get(n, 0)) for n, words in enumerate(MATCHES)}
        assert {words: pair for words, pair in pairs.items() if pair[0] != pair[1]} == {}, stage
        without[stage] = counts[MATCHES.index("! --socket-exists")]
    assert without["connect"] == 0  # the answer to a SYN is of the listening socket
    assert without["early data"] == 1  # acknowledged by a connection that is not accepted
