"""A snapshot of a namespace whose rules were loaded by either iptables, read back and replayed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nfparity.capture.package import make
from nfparity.cli import main
from nfparity.snapshot import Snapshot, Variant, load_snapshot
from translate.ir import Family, Ruleset
from translate.read import read_ruleset

RULESETS = Path(__file__).parents[1] / "corpus/rulesets"
KIND = RULESETS / "kind-node/rules.iptables-save"
SIX = RULESETS / "kube-real/rules.ip6tables-save"

NODE = """
ip link set lo up
ip tuntap add eth0 mode tap
ip address add 172.18.0.2/16 dev eth0
ip link set eth0 up
ip route add default via 172.18.0.1
ip route add 10.244.1.0/24 via 172.18.0.4
ip route add blackhole 10.99.0.0/16
ip rule add fwmark 0x1 lookup 100 priority 100
ip rule add ipproto sctp lookup 100 priority 101
echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("build") / "capture.pyz"
    make(target)
    return target


def captured(program: Path, folder: Path, *commands: str) -> tuple[str, str]:
    """Run commands in a namespace of its own, capture there; the snapshot, and what was said."""
    target = str(folder / "node.tar.gz")
    python = f"{sys.executable} -I -S {program} -o {target}"
    script = "\n".join(("set -e", NODE, *commands, python, "cat /proc/net/ip_tables_names >&2 || true"))
    lock = {**os.environ, "XTABLES_LOCKFILE": str(folder / "lock")}
    done = subprocess.run(("unshare", "--net", "sh", "-c", script), capture_output=True, text=True, env=lock)
    assert done.returncode == 0, done.stderr
    return target, done.stderr


def loaded(snapshot: Snapshot, family: Family, variant: Variant | None = None) -> object:
    return meaning(snapshot.ruleset(family, variant))


def meaning(ruleset: Ruleset) -> object:
    """Return the meaning of the rules, by table and chain, whatever their order and spelling."""
    return {
        table.name: {
            chain.name: (chain.policy, [(set(r.tests), r.actions, r.comment) for r in chain.rules])
            for chain in table.chains
        }
        for table in ruleset.tables
        if any(chain.rules for chain in table.chains)
    }


def original(path: Path, family: Family = Family.IP) -> object:
    return meaning(read_ruleset(path.read_bytes(), name=path.name, family=family))


@pytest.mark.parametrize("variant", list(Variant))
def test_rules_are_read_back_equal(program: Path, tmp_path: Path, variant: Variant) -> None:
    path, _ = captured(
        program,
        tmp_path,
        f"iptables-{variant.value}-restore < {KIND}",
        f"ip6tables-{variant.value}-restore < {SIX}",
    )
    snapshot = load_snapshot(path)
    assert set(snapshot.rules) == {(variant, Family.IP), (variant, Family.IP6)}
    assert loaded(snapshot, Family.IP) == original(KIND)
    assert loaded(snapshot, Family.IP6) == original(SIX, Family.IP6)
    node = snapshot.node
    assert [(i.name, [str(a) for a in i.addresses if a.family is Family.IP]) for i in node.interfaces] == [
        ("eth0", ["172.18.0.2/16"])
    ]
    assert [str(r) for r in node.routes if r.family is Family.IP] == [
        "0.0.0.0/0 via 172.18.0.1 dev eth0",
        "blackhole 10.99.0.0/16",
        "10.244.1.0/24 via 172.18.0.4 dev eth0",
    ]
    assert node.sysctl("net.ipv4.conf.all.route_localnet") == "1"
    assert "100: from all fwmark 0x1 lookup 100" in [str(rule) for rule in node.rules_of(Family.IP)]
    assert [n for n in node.assumed if n.startswith("no routing rule priority 101")]


def test_both_stacks_at_once(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, said = captured(
        program,
        tmp_path,
        f"iptables-legacy-restore < {KIND}",
        "iptables-nft -A INPUT -p udp -j DROP",
    )
    assert "both iptables-legacy and iptables-nft have rules" in said
    assert loaded(load_snapshot(path), Family.IP, Variant.LEGACY) == original(KIND)
    assert main(["graph", path]) == 2
    assert "--variant" in capsys.readouterr().err
    assert main(["graph", path, "--variant", "nft"]) == 0


def test_looking_makes_no_table(program: Path, tmp_path: Path) -> None:
    path, said = captured(program, tmp_path)
    assert "filter" not in said
    snapshot = load_snapshot(path)
    assert not snapshot.rules
    assert snapshot.nft is not None
    assert '"table"' not in snapshot.nft


def test_expressions_are_tried_and_nothing_is_left(program: Path, tmp_path: Path) -> None:
    """The rules and the loaded modules stay as they are."""
    state = "(nft -s list ruleset; cut -d' ' -f1 /proc/modules || true) 2>/dev/null >"
    path, _ = captured(
        program,
        tmp_path,
        "nft add table ip theirs",
        f"{state} {tmp_path}/before",
        f"{sys.executable} -I -S {program} -o {tmp_path}/once.tar.gz",
        f"{state} {tmp_path}/after",
    )
    assert (tmp_path / "before").read_text() == (tmp_path / "after").read_text()
    tried = load_snapshot(path).meta["expressions"]
    assert isinstance(tried, dict)
    assert tried["own namespace"]
    assert "nf_tables" in tried["accepted"]
    rules = {"nft_numgen": "numgen inc mod 2 0", "nft_queue": "queue num 0", "nft_quota": "quota 1 mbytes"}
    for module, rule in rules.items():
        text = f"table ip t {{ chain c {{ {rule}\n}}\n}}\n"
        command = ("unshare", "-n", "nft", "-f", "-")
        done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
        if module not in tried["not tried"]:
            assert (module in tried["accepted"]) == (done.returncode == 0)
            assert (module in tried["refused"]) == (done.returncode != 0)


def test_a_snapshot_is_replayed(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = captured(program, tmp_path, f"iptables-nft-restore < {KIND}")
    backends = "iptables-legacy,iptables-nft,nftables"
    assert main(["diff", path, "--random", "50", "--backends", backends]) == 0
    told = capsys.readouterr().out
    assert "parity: 50 flows" in told
    assert "assumed no routing rule priority 101" in told
