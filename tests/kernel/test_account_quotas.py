"""``-m nfacct`` with an object that has a quota: it holds only beyond this quota (``nfnl_acct_overquota``).

Rules do not show quotas. The model has objects without one, and the note of a translation says so.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]

SCRIPT = """
import socket, struct, subprocess
from backends.testbed.netlink import Accounting, attribute
NEW, CREATE, QUOTA_OF_PACKETS = 0x700, 0x400, 1
def added(accounting, name, quota):
    body = struct.pack("=BBH", 0, 0, 0) + attribute(1, name + b"\\0")
    body += attribute(5, struct.pack(">I", QUOTA_OF_PACKETS)) + attribute(6, struct.pack(">Q", quota))
    accounting.demand(NEW, CREATE, body)
with Accounting() as accounting:
    accounting.add("without")
    added(accounting, b"with", 3)
subprocess.run(("ip", "link", "set", "lo", "up"), check=True)
rule = "-A PREROUTING -p udp --dport 5 -m nfacct --nfacct-name {} -j ACCEPT\\n"
rules = rule.format("with") + rule.format("without")
subprocess.run(("iptables-legacy-restore",), input=f"*mangle\\n{rules}COMMIT\\n", text=True, check=True)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(8):
    sender.sendto(b"x", ("127.0.0.1", 5))
subprocess.run(("iptables-legacy-save", "-c", "-t", "mangle"), check=True)
"""


def test_an_object_with_a_quota_matches_beyond_it() -> None:
    done = subprocess.run(
        ("unshare", "-n", sys.executable, "-c", SCRIPT), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    counts = [int(n) for n in re.findall(r"^\[(\d+):\d+\] -A", done.stdout, re.MULTILINE)]
    assert counts == [5, 3], "five packets beyond the quota of three; the second rule counts the first three"
