"""``-m policy`` and its translation beside each other, for packets that pass no, one or two states of IPsec.

A namespace sends to another; both have the states, and count packets in their last or first hook. Debian's
kernels have ESP: ``python -m vm --kernel 6.1 --without-tc -- .venv/bin/python -m pytest -n0 THIS_FILE``.
"""

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

OPTIONS = (
    *("", "--reqid 7", "--reqid 9", "! --reqid 7", "! --reqid 9", "--reqid 8"),
    *("--spi 0x10000", "--spi 0x100", "! --spi 0x10000", "--spi 0x20000", "--spi 0x200"),
    *("--strict --reqid 7", "--strict --reqid 9", "--strict ! --reqid 8", "--strict --reqid 7 --spi 0x10000"),
    *("--strict --reqid 7 --next --reqid 9", "--strict --reqid 9 --next --reqid 7"),
    *("--strict --spi 0x20000 --next --reqid 7", "--strict --spi 0x10000 --next ! --reqid 7"),
    *("--strict --reqid 7 --next --reqid 9 --next --reqid 7", "--strict ! --reqid 8 --next ! --reqid 8"),
)
NEVER = {
    *("--reqid 8", "--spi 0x100", "--spi 0x200", "--strict --reqid 9"),
    *("--strict --reqid 9 --next --reqid 7", "--strict --spi 0x20000 --next --reqid 7"),
    "--strict --reqid 7 --next --reqid 9 --next --reqid 7",
}

_SCRIPT = """
import json, os, subprocess, sys
way, legacy, ours = json.load(sys.stdin)
def run(*words, text=None):
    return subprocess.run(words, input=text, text=True, check=True, capture_output=True).stdout
here, there = ("ip",), ("nsenter", "--net=/proc/%d/ns/net" % int(sys.argv[1]), "ip")
PAIRS = (("10.9.0.1", "10.9.0.2"), ("10.9.0.1", "10.9.0.3"))
KEY = "0x" + "01" * 20
run(*here, "link", "add", "near0", "type", "veth", "peer", "name", "far0", "netns", sys.argv[1])
run(*here, "addr", "add", "10.9.0.1/24", "dev", "near0")
run(*here, "link", "set", "near0", "up")
for address in (2, 3, 4):
    run(*there, "addr", "add", f"10.9.0.{address}/24", "dev", "far0")
run(*there, "link", "set", "far0", "up")
for side in (here, there):
    for source, target in PAIRS:
        for spi, reqid in (("0x100", "7"), ("0x200", "9")):
            ends = ("src", source, "dst", target, "proto", "esp", "spi", spi, "reqid", reqid)
            run(*side, "xfrm", "state", "add", *ends, "mode", "transport",
                "enc", "ecb(cipher_null)", "", "auth", "hmac(sha1)", KEY)
for (source, target), reqids in zip(PAIRS, (("7",), ("7", "9"))):
    words = ["xfrm", "policy", "add", "src", source, "dst", target, "dir", "out"]
    for reqid in reqids:
        words += ("tmpl", "src", source, "dst", target, "proto", "esp", "reqid", reqid, "mode", "transport")
    run(*here, *words)
counting = () if way == "out" else ("nsenter", "--net=/proc/%d/ns/net" % int(sys.argv[1]))
run(*counting, "iptables-legacy-restore", text=legacy)
run(*counting, "nft", "-f", "-", text=ours)
states = []
for address in (4, 2, 3):
    sender = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); " \\
        f"s.sendto(b'', ('10.9.0.{address}', 9))"
    run(sys.executable, "-c", sender)
    run(sys.executable, "-c", "import time; time.sleep(0.3)")
    run(sys.executable, "-c", sender)
    run(sys.executable, "-c", "import time; time.sleep(0.3)")
    states.append((run(*counting, "iptables-legacy-save", "-c", "-t", "mangle"),
                   run(*counting, "nft", "list", "ruleset")))
print(json.dumps(states))
"""


def _has_esp() -> bool:
    words = ["unshare", "--net", "ip", "xfrm", "state", "add", "src", "10.9.0.1", "dst", "10.9.0.2"]
    words += ["proto", "esp", "spi", "1", "mode", "transport", "enc", "ecb(cipher_null)", ""]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize(("way", "hook"), [("in", "INPUT"), ("out", "OUTPUT")])
def test_the_same_packets_match(way: str, hook: str, level: int) -> None:
    if not _has_esp():
        pytest.skip("this kernel has no ESP (CONFIG_INET_ESP)")
    lines = [
        f"-A {hook} -p udp -m policy --dir {way} --pol ipsec {words} -m nfacct --nfacct-name a{n}."
        for n, words in enumerate(OPTIONS)
    ]
    rules = "\n".join(("*mangle", *lines, "COMMIT", ""))
    legacy = rules.replace(" -m nfacct", " -m comment").replace("--nfacct-name", "--comment")
    text = emit(lower(read_ruleset(rules.encode(), name="rules", family=Family.IP), level=level)).text
    with subprocess.Popen(["unshare", "--net", "sleep", "infinity"]) as other:
        try:
            done = subprocess.run(
                ["unshare", "--net", sys.executable, "-c", _SCRIPT, str(other.pid)],
                input=json.dumps((way, legacy, text)),
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            other.kill()
    assert done.returncode == 0, done.stderr
    before = [0] * len(OPTIONS)
    for saved, listed in json.loads(done.stdout):
        counts = {int(n): int(c) for c, n in re.findall(r"^\[(\d+):.*--comment \"?a(\d+)\.", saved, re.M)}
        wanted = [counts[n] for n in range(len(OPTIONS))]
        found = re.findall(r"counter nfacct_a(\d+)\S* \{.*?packets (\d+)", listed, re.DOTALL)
        ours = {int(n): int(c) for n, c in found}
        different = {
            w: (wanted[n], ours.get(n, 0)) for n, w in enumerate(OPTIONS) if wanted[n] != ours.get(n, 0)
        }
        assert not different
        before = wanted
    assert {words for n, words in enumerate(OPTIONS) if not before[n]} == NEVER
