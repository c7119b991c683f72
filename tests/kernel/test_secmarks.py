"""``-j CONNSECMARK`` and its translation beside each other, for every pair of labels.

No security module has to be there: a table of the test gives labels to packets and connections, and counts
the pairs of labels behind the rules. It takes numbers as labels from ``numgen``, since nft has no constants.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import product

import pytest

from translate.ir import Family
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset

pytestmark = [pytest.mark.kernel, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]

LABELS = (0, 5, 0x90000)
PAIRS = tuple(product(LABELS, LABELS))
PORTS = {("save", pair): 4000 + n for n, pair in enumerate(PAIRS)} | {
    ("restore", pair): 5000 + n for n, pair in enumerate(PAIRS)
}

_SCRIPT = """
import json, socket, subprocess, sys
command, rules, labels, ports = json.load(sys.stdin)
def run(*words, text=None):
    return subprocess.run(words, input=text, text=True, check=True, capture_output=True).stdout
run("ip", "link", "set", "lo", "up")
run("nft", "-f", "-", text=labels)
run(*command, text=rules)
for port in ports:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"", ("127.0.0.1", port))
print(run("nft", "list", "counters"))
"""


def _rules() -> str:
    lines = [
        f"-A PREROUTING -p udp --dport {port} -j CONNSECMARK --{way}" for (way, _), port in PORTS.items()
    ]
    return "\n".join(("*mangle", *lines, "COMMIT", ""))


def _table() -> str:
    """Return a table that gives the labels before the rules, and counts the pairs behind them."""
    given, counted, counters = [], [], []
    for (_, (packet, connection)), port in PORTS.items():
        given.append(f"udp dport {port} ct secmark set numgen inc mod 1 offset {packet}")
        given.append(f"udp dport {port} meta secmark set ct secmark")
        given.append(f"udp dport {port} ct secmark set numgen inc mod 1 offset {connection}")
        for p, c in PAIRS:
            name = f"after_{port}_{p}_{c}"
            counters.append(f"counter {name} {{ }}")
            test = f"meta secmark & 0xffffffff == {p} ct secmark & 0xffffffff == {c}"
            counted.append(f"udp dport {port} {test} counter name {name}")
    chains = (
        *("chain before {", "type filter hook prerouting priority -199;", *given, "}"),
        *("chain behind {", "type filter hook prerouting priority -140;", *counted, "}"),
    )
    return "\n".join(("table ip labels {", *counters, *chains, "}", ""))


def _after(command: tuple[str, ...], rules: str) -> dict[int, tuple[int, int]]:
    """Return the labels of each packet and its connection behind the rules, by its port."""
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", _SCRIPT],
        input=json.dumps((command, rules, _table(), list(PORTS.values()))),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = re.findall(r"counter after_(\d+)_(\d+)_(\d+) \{\s*packets 1 ", done.stdout)
    assert len(found) == len(PORTS)
    return {int(port): (int(packet), int(connection)) for port, packet, connection in found}


def test_legacy_copies_a_label_only_to_a_place_without_one() -> None:
    after = _after(("iptables-legacy-restore",), _rules())
    for (way, (packet, connection)), port in PORTS.items():
        saved = way == "save" and not connection
        restored = way == "restore" and not packet
        wanted = (connection if restored else packet, packet if saved else connection)
        assert after[port] == wanted, (way, packet, connection)


@pytest.mark.parametrize("level", [0, 2])
def test_the_translation_copies_the_same_labels(level: int) -> None:
    text = emit(lower(read_ruleset(_rules().encode(), name="rules", family=Family.IP), level=level)).text
    assert _after(("nft", "-f", "-"), text) == _after(("iptables-legacy-restore",), _rules())
