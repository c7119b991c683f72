"""``-j CLASSIFY`` in iptables-legacy and in the tc program: the class that gets a packet."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Final

import pytest

from backends.tc_ebpf import TcEbpfBackend
from backends.tc_ebpf.dataplane import Dataplane
from tests.kernel.helpers.availability import require
from translate.bpf import emit
from translate.passes import lower
from translate.read import read_ruleset

DEVICE: Final = """\
link set lo up
link add out address 02:00:00:00:00:01 type veth peer name in
link set in up
address add 192.0.2.1/24 dev out
link set out up
neighbour add 192.0.2.9 lladdr 02:00:00:00:00:09 dev out
"""
RULES = """\
*mangle
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A OUTPUT -p udp -m udp --dport 1 -j CLASSIFY --set-class 0001:0003
-A OUTPUT -p udp -m udp --dport 2 -j CLASSIFY --set-class 0001:0003
-A POSTROUTING -p udp -m udp --dport 2 -j CLASSIFY --set-class 0001:0002
-A POSTROUTING -p udp -m udp --dport 3 -j CLASSIFY --set-class 0001:0001
-A POSTROUTING -p udp -m udp --dport 4 -j CLASSIFY --set-class 0001:0002
COMMIT
*nat
:OUTPUT ACCEPT [0:0]
-A OUTPUT -p udp -m udp --dport 4 -j DNAT --to-destination 192.0.2.8
COMMIT
"""


def run(*words: str, text: str | None = None) -> str:
    return subprocess.run(words, input=text, text=True, check=True, capture_output=True).stdout


def classes(backend: str) -> dict[str, list[int]]:
    """Return the packets of each class after a packet to each port."""
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-m", __name__, backend],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts: dict[str, list[int]] = json.loads(done.stdout)
    return counts


@pytest.mark.parametrize("backend", ["iptables-legacy", "tc-ebpf"])
def test_a_packet_gets_into_its_class(backend: str) -> None:
    require(TcEbpfBackend())
    assert classes(backend) == {
        "1": [0, 0, 1],
        "2": [0, 1, 0],
        "3": [1, 0, 0],
        "4": [0, 1, 0],
    }


def main() -> None:
    """Load the rules, and print the new packets of each class for each port."""
    run("ip", "-batch", "-", text=DEVICE)
    run("tc", "qdisc", "add", "dev", "out", "root", "handle", "1:", "htb")
    for number in ("1", "2", "3"):
        run(
            "tc",
            "class",
            "add",
            "dev",
            "out",
            "parent",
            "1:",
            "classid",
            f"1:{number}",
            "htb",
            "rate",
            "1gbit",
        )
    if sys.argv[1] == "tc-ebpf":
        program = Dataplane(emit(lower(read_ruleset(RULES.encode(), name="rules"), level=2)))
        program.load()
    else:
        run("iptables-legacy-restore", text=RULES)
    found, before = {}, counted()
    for port in ("1", "2", "3", "4"):
        run(sys.executable, "-c", _SEND, port)
        if port == "4":  # the packet has waited for this neighbour
            run("ip", "neighbour", "replace", "192.0.2.8", "lladdr", "02:00:00:00:00:08", "dev", "out")
        after = counted()
        found[port] = [b - a for a, b in zip(before, after, strict=True)]
        before = after
    print(json.dumps(found))


_SEND: Final = """
import socket, sys
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"data", ("192.0.2.9", int(sys.argv[1])))
"""


def counted() -> list[int]:
    """Return the packets of the classes 1:1, 1:2 and 1:3."""
    shown = run("tc", "-s", "class", "show", "dev", "out")
    found = re.findall(r"class htb 1:(\d) .*?Sent \d+ bytes (\d+) pkt", shown, re.DOTALL)
    return [int(count) for _, count in sorted(found)]


if __name__ == "__main__":
    main()
