"""``nfparity tc load`` on a node with routing rules."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

RULES = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -j DROP\n-A FORWARD -p udp -j REJECT\nCOMMIT\n"


@pytest.mark.parametrize("rule", ["fwmark 0x80/0x80 lookup 100", "ipproto udp lookup 100"])
def test_a_rule_that_needs_a_lookup_is_refused_with_its_line(rule: str, tmp_path: Path) -> None:
    file = tmp_path / "rules"
    file.write_text(RULES)
    load = shlex.join([sys.executable, "-m", "nfparity", "tc", "load", str(file)])
    node = "ip link add d0 type veth peer name d1 && ip address add 192.0.2.2/24 dev d0"
    script = f"{node} && ip rule add {rule} && {load}; status=$?; tc qdisc show dev d0; exit $status"
    done = subprocess.run(["unshare", "-n", "sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert f"{file}:4" in done.stderr
    assert "REJECT makes an answer, for which the tc program looks up a route without" in done.stderr
    assert "clsact" not in done.stdout
