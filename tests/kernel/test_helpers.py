"""``-j CT --helper`` and its translation: the connections that have expectations, on one kernel."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

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
:OUTPUT ACCEPT [0:0]
:ftp - [0:0]
-A OUTPUT -p udp -m udp --dport 6900 -j CT --helper tftp
-A OUTPUT -p tcp -j ftp
-A OUTPUT -p tcp -m tcp --dport 2101 -j CT --helper ftp
-A ftp -p tcp -m tcp --dport 2101:2102 -j RETURN
-A ftp -p tcp -m tcp --dport 2103 -j NOTRACK
-A ftp -p tcp -m tcp --dport 2104 -j CT --zone 3
-A ftp -p tcp -m tcp --dport 2105 -j CT --zone 3 --helper ftp
-A ftp -p tcp -m tcp --sport 2105 -j CT --zone 3
-A ftp -p tcp -m tcp --dport 2106 -j ACCEPT
-A ftp -p tcp -m multiport --dports 2100:2106,2108 -j CT --helper ftp
COMMIT
"""

SCRIPT = """
import json, socket, subprocess, sys
command, text = json.loads(sys.argv[1])
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
subprocess.run(command, input=text, text=True, check=True)
def talk(port):
    with socket.create_server(("127.0.0.1", port)) as server:
        client = socket.create_connection(("127.0.0.1", port))
        taken, _ = server.accept()
        for line in (b"USER a\\r\\n", b"PORT 127,0,0,1,%d,%d\\r\\n" % divmod(port + 10000, 256)):
            client.sendall(line)
            taken.recv(100)
    return client, taken
kept = [talk(port) for port in range(2100, 2110)]
for port in (6900, 6901):
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind(("127.0.0.1", port + 10000))
    made.sendto(b"\\0\\1a\\0octet\\0", ("127.0.0.1", port))
    kept.append(made)
print(json.dumps(open("/proc/net/nf_conntrack_expect").read()))
"""


def _expected(command: list[str], text: str) -> set[int]:
    """Return the ports to which the kernel expects connections."""
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", SCRIPT, json.dumps((command, text))],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return {int(line.rpartition("dport=")[2].split()[0]) for line in json.loads(done.stdout).splitlines()}


@pytest.mark.skipif(not Path("/proc/net/nf_conntrack_expect").exists(), reason="no list of expectations")
@pytest.mark.parametrize("level", [0, 2])
def test_the_same_connections_have_a_helper(level: int) -> None:
    ruleset = read_ruleset(RULES.encode(), name="rules", family=Family.IP)
    legacy = _expected(["iptables-legacy-restore"], RULES)
    assert legacy == {12100, 12101, 12105, 12108, 16900}
    assert _expected(["nft", "-f", "-"], emit(lower(ruleset, level=level)).text) == legacy


LOADS = """
import json, subprocess, sys
for text in json.loads(sys.argv[1]):
    subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True)
print(subprocess.run(["nft", "list", "ruleset"], text=True, check=True, capture_output=True).stdout)
"""


def test_helpers_come_and_go_with_a_change() -> None:
    one = "*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT {}\nCOMMIT\n"
    rules = (
        "-p tcp -j CT --helper ftp",
        "-p udp -j CT --helper tftp",
        "-j DROP",
        "-p tcp -j CT --helper ftp",
    )
    outputs = [emit(lower(read_ruleset(one.format(rule).encode(), name="rules"), level=2)) for rule in rules]
    changes = [new.change_from(old).text for old, new in itertools.pairwise(outputs)]
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", LOADS, json.dumps([outputs[0].text, *changes])],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "ct helper helper_ftp_tcp {" in done.stdout
    assert "tftp" not in done.stdout
