"""A transparent proxy gets what TPROXY takes, through iptables-legacy and through the translation alike."""

from __future__ import annotations

import subprocess
import sys

import pytest

import translate.nft
from backends.testbed.command import find_tool
from translate.ir import Family
from translate.passes import lower
from translate.read import read_ruleset

RULES = """\
*mangle
:PREROUTING ACCEPT [0:0]
-A PREROUTING -p tcp -m tcp --dport 80 -j TPROXY {options} --tproxy-mark 0x1/0x1
-A PREROUTING -p tcp -m tcp --dport 80 -j DROP
COMMIT
"""

NODE = """
import os, socket, subprocess, sys
load, client, listening, port = sys.argv[1:]
def run(*words, text=None):
    subprocess.run(words, input=text, text=True, check=True)
there = subprocess.Popen(["unshare", "-n", "cat"], stdin=subprocess.PIPE)
while os.readlink(f"/proc/{there.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
    pass
inside = ("nsenter", "-t", str(there.pid), "-n")
run("ip", "link", "set", "lo", "up")
run("ip", "link", "add", "here", "type", "veth", "peer", "name", "there", "netns", str(there.pid))
for where, name, address in (((), "here", "10.9.0.1/24"), (inside, "there", "10.9.0.2/24")):
    run(*where, "ip", "address", "add", address, "dev", name)
    run(*where, "ip", "link", "set", name, "up")
run(*inside, "ip", "route", "add", "default", "via", "10.9.0.1")
run("ip", "rule", "add", "fwmark", "1", "lookup", "100")
run("ip", "route", "add", "local", "default", "dev", "lo", "table", "100")
run(*load.split(), text=sys.stdin.read())
listener = socket.socket()
listener.setsockopt(socket.SOL_IP, 19, 1)  # IP_TRANSPARENT
listener.bind((listening, int(port)))
listener.listen()
listener.settimeout(30)
caller = subprocess.Popen([*inside, sys.executable, "-c", client])
took, _ = listener.accept()
print(took.getsockname()[0], took.getsockname()[1])
took.close()
caller.wait()
there.kill()
"""

CLIENT = "import socket; socket.create_connection(('198.51.100.7', 80), 30).recv(1)"


def reached(load: str, text: str, listener: tuple[str, str]) -> str:
    """Return the address that the proxy's connection was meant for."""
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", NODE, load, CLIENT, *listener],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("options", "listener"),
    [
        ("--on-port 15001 --on-ip 127.0.0.1", ("127.0.0.1", "15001")),
        ("--on-port 0", ("10.9.0.1", "80")),
    ],
    ids=["another port", "the port and device of the packet"],
)
@pytest.mark.parametrize("level", [None, 0, 2])
def test_the_proxy_gets_the_connection(level: int | None, options: str, listener: tuple[str, str]) -> None:
    for tool in ("unshare", "nsenter", "ip", "nft", "iptables-legacy-restore"):
        if find_tool(tool) is None:
            pytest.skip(f"needs {tool}")
    rules = RULES.format(options=options)
    load, text = "iptables-legacy-restore", rules
    if level is not None:
        ruleset = read_ruleset(rules.encode(), name="rules", family=Family.IP)
        load, text = "nft -f -", translate.nft.emit(lower(ruleset, level=level)).text
    assert reached(load, text, listener) == "198.51.100.7 80"
