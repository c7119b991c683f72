"""``-m physdev`` where packets do come by a bridge: iptables, and what nftables says in its place.

A node of TAP devices has no bridge, so that these packets go between two namespaces, over one pair of
devices that is bridged and one that is not.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from translate.nft import emit
from translate.passes import LEVELS, lower
from translate.read import read_ruleset

HEAD = "*filter\n:INPUT ACCEPT [0:0]\n:ASK - [0:0]\n"
RULES = {
    "from a bridge": "-A INPUT -p tcp -m tcp --syn -m physdev --physdev-is-in -j DROP\n",
    "from no bridge": "-A INPUT -p tcp -m tcp --syn -m physdev ! --physdev-is-in -j DROP\n",
    "back from no bridge": (
        "-A INPUT -p tcp -m tcp --syn -j ASK\n-A ASK -m physdev ! --physdev-is-in -j RETURN\n-A ASK -j DROP\n"
    ),
}
PASS = {
    "from a bridge": {"10.1.0.1": False, "10.2.0.1": True, "127.0.0.1": True},
    "from no bridge": {"10.1.0.1": True, "10.2.0.1": False, "127.0.0.1": False},
    "back from no bridge": {"10.1.0.1": False, "10.2.0.1": True, "127.0.0.1": True},
}

NODE = """
import json, socket, subprocess, sys

def run(*words, given=None):
    subprocess.run(words, check=True, input=given, text=True, stdout=subprocess.DEVNULL)

CONNECT = '''
import socket, sys
try:
    socket.create_connection((sys.argv[1], 80), timeout=float(sys.argv[2]))
    print("connected")
except TimeoutError:
    print("lost")
'''

tool, rules = sys.argv[1].split(), sys.argv[2]
waits = ("unshare", "-n", "sh", "-c", "echo; exec sleep 60")
with subprocess.Popen(waits, stdout=subprocess.PIPE) as other:
    try:
        other.stdout.readline()
        there = ("nsenter", f"--net=/proc/{other.pid}/ns/net")
        run("ip", "link", "add", "br0", "type", "bridge")
        run("ip", "link", "set", "lo", "up")
        for port, far, home, host in (
            ("b0", "c0", "br0", "10.1.0.1/24 10.1.0.2/24"),
            ("p0", "d0", "p0", "10.2.0.1/24 10.2.0.2/24"),
        ):
            near, remote = host.split()
            run("ip", "link", "add", port, "type", "veth", "peer", "name", far, "netns", str(other.pid))
            if home != port:
                run("ip", "link", "set", port, "master", home)
            run("ip", "address", "add", near, "dev", home)
            run("ip", "link", "set", port, "up")
            run("ip", "link", "set", home, "up")
            run(*there, "ip", "address", "add", remote, "dev", far)
            run(*there, "ip", "link", "set", far, "up")
        def connected(seconds):
            for address in ("10.1.0.1", "10.2.0.1", "127.0.0.1"):
                where = () if address.startswith("127.") else there
                command = (*where, sys.executable, "-c", CONNECT, address, seconds)
                yield address, subprocess.check_output(command, text=True) == "connected\\n"
        with socket.create_server(("0.0.0.0", 80)):
            # Before the rules: a first packet may wait for its link and its neighbour, later ones do not.
            assert all(dict(connected("30")).values())
            run(*tool, given=rules)
            print(json.dumps(dict(connected("0.5"))))
    finally:
        other.kill()
"""


def passes(tool: str, rules: str) -> object:
    """Return the addresses of the node that accept a connection once the tool has loaded the rules."""
    for needed in ("unshare", "nsenter", "ip", tool.split()[0]):
        if shutil.which(needed) is None:
            pytest.skip(f"needs {needed}")
    command = ("unshare", "-n", sys.executable, "-c", NODE, tool, rules)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if "physdev" in done.stderr or "type bridge" in done.stderr:
        pytest.skip(f"this kernel has no bridges with physdev: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", RULES)
def test_iptables(case: str, backend_name: str) -> None:
    assert passes(f"{backend_name}-restore", f"{HEAD}{RULES[case]}COMMIT\n") == PASS[case]


@pytest.mark.parametrize("case", RULES)
@pytest.mark.parametrize("level", LEVELS)
def test_nftables(case: str, level: int) -> None:
    ruleset = read_ruleset(f"{HEAD}{RULES[case]}COMMIT\n".encode(), name=case)
    output = emit(lower(ruleset, level=level))
    assert [note.feature for note in output.notes] == ["physdev"]
    assert passes("nft -f -", output.text) == PASS[case]
