"""``nfparity tc load`` and ``refresh`` on a node with routes and routing rules of its own."""

from __future__ import annotations

import json
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


def test_a_refresh_reads_the_routes_for_rpfilter(tmp_path: Path) -> None:
    file = tmp_path / "rules"
    file.write_text("*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -m rpfilter --invert -j DROP\nCOMMIT\n")
    tc = shlex.join([sys.executable, "-m", "nfparity", "tc"])
    # The devices have no addresses, whose routes would come a second later; groups are the last routes.
    groups = "ip -6 route show table local | grep -c ff00::/8"
    steps = (
        "ip link add d0 type veth peer name d1",
        *(f"ip link set {device} addrgenmode none && ip link set {device} up" for device in ("d0", "d1")),
        f"timeout 20 sh -c 'until [ $({groups}) = 2 ]; do sleep 0.1; done'",
        f"{tc} load --family ip6 {file} >&2 && {tc} status --format json",
        "ip -6 route add fd00:9::/64 dev d0 && ip -6 route append fd00:9::/64 dev d1",
        f"{tc} refresh >&2 && {tc} status --format json",
        f"{tc} unload >&2",
    )
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", " && ".join(steps)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    decoder = json.JSONDecoder()
    before, end = decoder.raw_decode(done.stdout)
    after, _ = decoder.raw_decode(done.stdout[end:].lstrip())
    entries = [status["ip6"]["tables"]["ways_back"]["entries"] for status in (before, after)]
    assert entries[1] == entries[0] + 3  # the first route of all devices, and that of each device
