"""``-m socket --restore-skmark`` and its translation, with sockets that have marks."""

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

BEFORE, LATER = 0x99, 0x100
"""The mark of each packet before the rule, and a bit that the next rule sets."""
SOCKETS = {
    1001: ("own", 0, 0x10),
    1002: ("any", 0, 0x20),
    1003: ("own", 1, 0x30),
    1004: ("any", 1, 0x40),
    1005: ("own", 0, 0x60),
}
"""The address, ``IP_TRANSPARENT`` and mark of the UDP socket at each port; none is at port 1000."""
LISTENER = 0x50
"""The mark of the socket that listens for TCP at port 1006, and of its connections."""
OPENED = {mark for _, _, mark in SOCKETS.values()}
MARKS = sorted(mark | bit for mark in {0, BEFORE, LISTENER, *OPENED} for bit in (0, LATER))
RULES = {
    "-m socket --restore-skmark -j ACCEPT": {0, LISTENER, 0x10, 0x30, 0x60},
    "-m socket --nowildcard --restore-skmark -j ACCEPT": {0, LISTENER, *OPENED},
    "-p udp -m socket --transparent --restore-skmark -j ACCEPT": {0x30},
    "-p udp -m socket --transparent --nowildcard --restore-skmark": {LATER | 0x30, LATER | 0x40},
    "-m mark --mark 0x99 -m socket --restore-skmark -m comment --comment last -j RETURN": {
        *(0, LISTENER, 0x10, 0x30, 0x60)
    },
    "-m socket --nowildcard --restore-skmark -j MARK --and-mark 0x30": {
        *(LATER, LATER | 0x10, LATER | 0x20, LATER | 0x30)
    },
}
"""Rules, and the marks of the packets of sockets: with 0x100 if the next rule sees the packet. The client of
TCP has mark 0. The third segment of its connection comes to the socket of a request, which has no mark."""
FIRST = next(iter(RULES))

SCRIPT = """
import json, socket, subprocess, sys
def run(*words, text=None):
    return subprocess.run(words, input=text, text=True, check=True, capture_output=True).stdout
six, legacy, nft, sockets, mark = json.loads(sys.argv[1])
family, own, everywhere = (socket.AF_INET6, "::1", "::") if six else (socket.AF_INET, "127.0.0.1", "0.0.0.0")
run("ip", "link", "set", "lo", "up")
if legacy:
    run("ip6tables-legacy-restore" if six else "iptables-legacy-restore", text=legacy)
else:
    run("nft", "-f", "-", text=nft)
def opened(kind, address, port, transparent, mark):
    made = socket.socket(family, kind)
    made.setsockopt(socket.IPPROTO_IPV6 if six else socket.SOL_IP, 75 if six else 19, transparent)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, mark)
    made.bind((own if address == "own" else everywhere, port))
    return made
kept = [opened(socket.SOCK_DGRAM, address, int(port), transparent, mark)
        for port, (address, transparent, mark) in sockets.items()]
sender = socket.socket(family, socket.SOCK_DGRAM)
for port in range(1000, 1006):
    sender.sendto(b"x", (own, port))
server = opened(socket.SOCK_STREAM, "own", 1006, 0, mark)
server.listen()
client = socket.create_connection((own, 1006))
taken, _ = server.accept()
client.sendall(b"x")
taken.recv(1)
if legacy:
    print(run("ip6tables-legacy-save" if six else "iptables-legacy-save", "-c", "-t", "security"))
else:
    print(run("nft", "list", "ruleset"))
"""


def marks_seen(legacy: str, nft: str, family: Family) -> set[int]:
    """Return the marks that packets have after the rules."""
    asked = json.dumps((family is Family.IP6, legacy, nft, SOCKETS, LISTENER))
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", SCRIPT, asked], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    if legacy:
        counts = re.findall(r"^\[(\d+):\d+\] -A INPUT.*--comment m(\d+)", done.stdout, re.MULTILINE)
    else:
        found = re.finditer(r"counter nfacct_m(\d+) \{.*?packets (\d+)", done.stdout, re.DOTALL)
        counts = [(m[2], m[1]) for m in found]
    assert len(counts) == len(MARKS)
    return {int(mark) for count, mark in counts if int(count)}


@pytest.mark.parametrize("level", [0, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("hook", ["PREROUTING", "INPUT"])
@pytest.mark.parametrize("family", list(Family))
@pytest.mark.parametrize("rule", RULES)
def test_packets_get_the_same_marks(rule: str, family: Family, hook: str, level: int) -> None:
    lines = (
        *("*raw", f"-A PREROUTING -j MARK --set-mark {BEFORE}", "COMMIT"),
        *("*mangle", f"-A {hook} {rule}", f"-A {hook} -j MARK --or-mark {LATER}", "COMMIT"),
        "*security",
        *(f"-A INPUT -m mark --mark {mark} -m nfacct --nfacct-name m{mark}" for mark in MARKS),
        *("COMMIT", ""),
    )
    rules = "\n".join(lines)
    legacy = rules.replace(" -m nfacct", " -m comment").replace("--nfacct-name", "--comment")
    text = emit(lower(read_ruleset(rules.encode(), name="rules", family=family), level=level)).text
    expected = marks_seen(legacy, "", family)
    assert expected - {BEFORE, LATER | BEFORE} == RULES[rule]
    assert marks_seen("", text, family) == expected
    if rule == FIRST:
        assert {BEFORE, LATER | BEFORE} <= expected, "the socket of a request, and no socket"
