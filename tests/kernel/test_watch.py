"""Changes of a live namespace since its capture: by iptables of both variants, nft and ipset."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from backends.testbed.command import find_tool

RULES = """\
*filter
:INPUT ACCEPT [0:0]
:OWN - [0:0]
-A INPUT -m set --match-set blocked src -j DROP
-A INPUT -p tcp -m tcp --dport 22 -m comment --comment "ssh" -j OWN
COMMIT
"""
SCRIPT = """
set -e
watch() {{ {watch} watch {snapshot} "$@" || test $? = 1; }}
ip link set lo up
ipset create blocked hash:ip
{tool}-restore <<'END'
{rules}END
nft -f - <<'END'
table inet mine {{
 set nets {{ type ipv4_addr; elements = {{ 192.0.2.1 }}; }}
 set seen {{ type ipv4_addr; flags dynamic; }}
 chain in {{ type filter hook input priority 5; ip saddr 127.0.0.1 add @seen {{ ip saddr }} counter accept; }}
}}
END
{watch} capture -o {snapshot}
{python} -c "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))"
echo "# nothing"; watch
ipset add blocked 192.0.2.7
nft add element inet mine nets '{{ 192.0.2.2 }}'
nft add rule inet mine in drop
{tool} -I OWN -p udp -j DROP
{tool} -P INPUT DROP
echo "# changed"; watch
echo "# every"
{watch} watch {snapshot} --every 1 --format openmetrics -o {metrics} &
until test -s {metrics}; do sleep 0.2; done
kill -TERM $!
set +e
wait $!
echo "status $?"
grep drift{{ {metrics}
"""


@pytest.mark.parametrize("tool", [pytest.param("iptables-legacy", marks=pytest.mark.slow), "iptables-nft"])
def test_changes_of_a_live_node(tool: str, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    for name in (tool, "ipset", "nft", "unshare"):
        if find_tool(name) is None:
            pytest.skip(f"needs {name}")
    script = SCRIPT.format(
        tool=tool,
        python=sys.executable,
        rules=RULES,
        watch=f"{sys.executable} -m nfparity.cli",
        snapshot=tmp_path / "node.tar.gz",
        metrics=tmp_path / "nfparity.prom",
    )
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "XTABLES_LOCKFILE": str(tmp_path / "lock")},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    nothing, _, rest = done.stdout.partition("# nothing\n")[2].partition("# changed\n")
    assert nothing.startswith("0 differences"), nothing
    changed, _, every = rest.partition("# every\n")
    assert changed.splitlines() == [
        "ipset blocked: extra: set or map blocked, element 192.0.2.7",
        f"{tool} filter: changed: chain INPUT: policy ACCEPT became policy DROP",
        f"{tool} filter: extra: chain OWN, at its end: -p udp -j DROP",
        'nft inet mine: extra: chain in, at its end: [{"drop":null}]',
        "nft inet mine: extra: set or map nets, element 192.0.2.2",
        "5 differences; 0 of 3 tables and ipsets are unchanged",
    ]
    assert every.splitlines() == [
        "status 143",
        'nfparity_drift{table="ipset blocked"} 1',
        f'nfparity_drift{{table="{tool} filter"}} 2',
        'nfparity_drift{table="nft inet mine"} 2',
    ]
