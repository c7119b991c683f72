"""A real handshake through ``-j SYNPROXY`` and its translations: the client gets the data of the server."""

from __future__ import annotations

import json
import os
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

RULES = """*raw
:PREROUTING ACCEPT [0:0]
-A PREROUTING -p tcp -m tcp --dport 80 --tcp-flags FIN,SYN,RST,ACK SYN -j CT --notrack
COMMIT
*filter
:INPUT ACCEPT [0:0]
-A INPUT -p tcp -m tcp --dport 80 -m conntrack --ctstate INVALID,UNTRACKED -j {target}
-A INPUT -m conntrack --ctstate INVALID -j DROP
COMMIT
"""
PROXY = "SYNPROXY --sack-perm --timestamp --wscale 7 --mss 1460"

SCRIPT = """
import ctypes, json, os, socket, subprocess, sys, threading
def run(*words, text=None):
    subprocess.run(words, input=text, text=True, check=True, capture_output=True)
def setting(name, value):
    with open("/proc/sys/net/" + name, "w") as file:
        file.write(value)
command, rules = json.loads(sys.argv[1])
server_ns = os.open("/proc/self/ns/net", os.O_RDONLY)
run("ip", "link", "set", "lo", "up")
run("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1")
setting("ipv4/tcp_syncookies", "1")
setting("ipv4/tcp_timestamps", "1")
listener = socket.create_server(("0.0.0.0", 80))
holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; read x"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE)
holder.stdout.readline()
run("ip", "link", "set", "v1", "netns", str(holder.pid))
run("ip", "addr", "add", "10.0.0.1/24", "dev", "v0")
run("ip", "link", "set", "v0", "up")
client = ["nsenter", "-n", "-t", str(holder.pid)]
run(*client, "ip", "addr", "add", "10.0.0.2/24", "dev", "v1")
run(*client, "ip", "link", "set", "v1", "up")
run(*command, text=rules)
setting("netfilter/nf_conntrack_tcp_loose", "0")
def serve():
    accepted, _ = listener.accept()
    accepted.sendall(b"hello")
    accepted.close()
threading.Thread(target=serve, daemon=True).start()
ask = "import socket; s = socket.create_connection(('10.0.0.1', 80), 5); print(s.recv(9).decode())"
done = subprocess.run([*client, sys.executable, "-c", ask], capture_output=True, text=True, timeout=30)
with open("/proc/net/stat/synproxy") as file:
    names, *rows = [line.split() for line in file]
counts = {name: sum(int(row[i], 16) for row in rows) for i, name in enumerate(names)}
holder.stdin.close()
print(json.dumps((done.stdout.strip(), counts)))
"""


def greeted(command: tuple[str, ...], rules: str) -> tuple[str, dict[str, int]]:
    """Return what the client read through the rules, and the kernel's counts of cookies."""
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", SCRIPT, json.dumps((command, rules))],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    text, counts = json.loads(done.stdout)
    return text, counts


def translated(rules: str, level: int) -> str:
    return emit(lower(read_ruleset(rules.encode(), name="rules", family=Family.IP), level=level)).text


def test_a_client_gets_through_the_proxy_of_both() -> None:
    rules = RULES.format(target=PROXY)
    results = [greeted(("iptables-legacy-restore",), rules)]
    results += [greeted(("nft", "-f", "-"), translated(rules, level)) for level in (0, 2)]
    for text, counts in results:
        assert text == "hello"
        assert (counts["syn_received"], counts["cookie_valid"]) == (1, 1)


def test_without_the_proxy_the_same_rules_refuse_the_handshake() -> None:
    rules = RULES.format(target="REJECT --reject-with tcp-reset")
    assert greeted(("iptables-legacy-restore",), rules)[0] == ""
    text, counts = greeted(("nft", "-f", "-"), translated(rules, 2))
    assert text == ""
    assert counts.get("syn_received", 0) == 0
