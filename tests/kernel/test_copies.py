"""``-j TEE`` and its translation: the copies that leave by each device."""

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

RULES = {
    Family.IP: """*mangle
:INPUT ACCEPT [0:0]
-A INPUT -p udp -m udp --dport 53 -j TEE --gateway 192.0.2.9
-A INPUT -p udp -m udp --dport 54 -j TEE --gateway 192.0.2.9 --oif second
-A INPUT -p udp -m udp --dport 55 -m conntrack --ctstate NEW,DNAT -j TEE --gateway 192.0.2.9
COMMIT
""",
    Family.IP6: """*mangle
:INPUT ACCEPT [0:0]
-A INPUT -p udp -m udp --dport 53 -j TEE --gateway 2001:db8::9
-A INPUT -p udp -m udp --dport 54 -j TEE --gateway 2001:db8::9 --oif second
-A INPUT -p udp -m udp --dport 55 -m conntrack --ctstate NEW,DNAT -j TEE --gateway 2001:db8::9
COMMIT
""",
}

SCRIPT = '''
import json, socket, subprocess, sys
def run(*words, text=None):
    subprocess.run(words, input=text, text=True, check=True, capture_output=True)
six, command, rules = json.loads(sys.argv[1])
to = "::1" if six else "127.0.0.1"
run("ip", "link", "set", "lo", "up")
for number, device in enumerate(("first", "second"), 1):
    run("ip", "link", "add", device, "type", "veth", "peer", "name", f"{device}-peer")
    for end in (device, f"{device}-peer"):
        run("ip", "link", "set", end, "arp", "off", "up")
    run("ip", "addr", "add", f"2001:db8:{number}::1/64" if six else f"10.0.{number}.1/24", "dev", device,
        *(["nodad"] if six else []))
    run("ip", *(["-6"] if six else []), "route", "add", "default", "dev", device, "metric", str(number))
run(*command, text=rules)
run("nft", "-f", "-", text="""table inet counted {
    counter first { }
    counter second { }
    chain output {
        type filter hook output priority 500;
        udp dport 52-55 oifname vmap { "first" : jump to_first, "second" : jump to_second }
    }
    chain to_first { counter name first; }
    chain to_second { counter name second; }
}""")
def sent():
    listed = subprocess.run(["nft", "-j", "list", "counters"], check=True, capture_output=True).stdout
    counters = [item["counter"] for item in json.loads(listed)["nftables"] if "counter" in item]
    return [c["packets"] for name in ("first", "second") for c in counters if c["name"] == name]
sender = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
counts = []
for port in (52, 53, 54, 55):
    sender.sendto(b"x", (to, port))
    counts.append(sent())
print(json.dumps(counts))
'''


def copies(family: Family, command: tuple[str, ...], rules: str) -> list[list[int]]:
    """Return the packets that have left by each device after one to each port."""
    request = json.dumps((family is Family.IP6, command, rules))
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", SCRIPT, request],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    counts: list[list[int]] = json.loads(done.stdout)
    return counts


@pytest.mark.parametrize("family", Family)
def test_each_sends_the_same_copies(family: Family) -> None:
    rules = RULES[family]
    legacy = "iptables-legacy-restore" if family is Family.IP else "ip6tables-legacy-restore"
    results = [copies(family, (legacy,), rules)]
    ruleset = read_ruleset(rules.encode(), name="rules", family=family)
    for level in (0, 2):
        text = emit(lower(ruleset, level=level)).text
        results.append(copies(family, ("nft", "-f", "-"), text))
    # to another port; to one that is copied; through the other device; once by a rule that nftables divides
    assert results == [[[0, 0], [1, 0], [1, 1], [2, 1]]] * 3
