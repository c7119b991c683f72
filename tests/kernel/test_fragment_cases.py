"""Flows with fragments: the cases without conntrack, and the rules that make the kernel reassemble."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from backends.simulator.conntrack.reassembly import reassembles
from nfparity.cli import main
from translate.ir import Family
from translate.read import read_ruleset

CASES = Path(__file__).parents[1] / "corpus" / "cases-of-fragments"
FAMILIES = {"fragments": Family.IP, "fragments6": Family.IP6}

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
]

WITHOUT = (
    *("nat", "raw: PREROUTING -j CT --notrack", "filter: FORWARD -m limit --limit 9/s -j ACCEPT"),
    *("filter: FORWARD -m addrtype --dst-type LOCAL", "raw: PREROUTING -m rpfilter -j ACCEPT"),
    *("filter: FORWARD -m recent --set", "filter: FORWARD -p udp -m udp --dport 9 -j REJECT"),
    *("filter: OUTPUT -m owner --uid-owner 5", "filter: FORWARD -m quota --quota 99999"),
    *("filter: FORWARD -m mac --mac-source 02:00:00:00:00:09", "mangle: FORWARD -j MARK --set-mark 1"),
    "filter: FORWARD -m hashlimit --hashlimit-name h --hashlimit-mode dstport --hashlimit-above 9/second",
)
WITH = (
    *("filter: FORWARD -m conntrack --ctstate NEW", "filter: FORWARD -m state --state NEW"),
    *("filter: FORWARD -m connmark --mark 1", "mangle: FORWARD -j CONNMARK --set-mark 1"),
    *("mangle: FORWARD -j CONNMARK --save-mark", "mangle: FORWARD -j CONNMARK --restore-mark"),
    "filter: FORWARD -p tcp --syn -m connlimit --connlimit-above 3",
    "filter: FORWARD -m connbytes --connbytes 1: --connbytes-dir both --connbytes-mode packets",
    *("filter: FORWARD -m connlabel --label 5", "filter: FORWARD -m helper --helper ftp"),
    "filter: FORWARD -m cluster --cluster-total-nodes 2 --cluster-local-node 1 --cluster-hash-seed 1",
    *("nat: POSTROUTING -j MASQUERADE", "nat: PREROUTING -p udp -j REDIRECT --to-ports 9"),
    *("raw: PREROUTING -j CT --zone 1", "mangle: PREROUTING -m socket", "unused: -m state --state NEW"),
    "mangle: PREROUTING -p tcp -j TPROXY --on-port 9 --tproxy-mark 1",
    "filter: FORWARD -p tcp -j SYNPROXY --mss 1460",
)
OF_FAMILY = {
    Family.IP: (
        "nat: POSTROUTING -j SNAT --to-source 192.168.0.2",
        "nat: PREROUTING -j NETMAP --to 9.9.0.0/16",
    ),
    Family.IP6: (
        "nat: POSTROUTING -j SNAT --to-source fd00:9::2",
        "nat: PREROUTING -j NETMAP --to fd00:8::/64",
    ),
}


def written(rule: str) -> str:
    """Return a table with one rule, given as ``table: rule``, or with none."""
    table, _, words = rule.partition(": ")
    if table == "unused":
        return f"*filter\n:UNUSED - [0:0]\n-A UNUSED {words}\nCOMMIT\n"
    return f"*{table}\n" + (f"-A {words}\n" if words else "") + "COMMIT\n"


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("case", FAMILIES)
def test_both_kernels_rules_agree_with_the_simulator(case: str, level: int) -> None:
    backends = "simulator,iptables-legacy,nftables,tc-ebpf"
    assert main(["diff", "--corpus", str(CASES / case), "--backends", backends, f"-O{level}"]) == 0


@pytest.mark.parametrize("case", FAMILIES)
def test_iptables_nft_reads_ports_of_later_fragments(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "--corpus", str(CASES / case), "--backends", "simulator,iptables-nft"]) == 1
    different = [line for line in capsys.readouterr().out.splitlines() if line.startswith("difference ")]
    assert different
    assert not [line for line in different if "whole" in line or "first" in line]


@pytest.mark.parametrize("rule", [*WITHOUT, *WITH, *range(2)])
@pytest.mark.parametrize("case", FAMILIES)
def test_rules_that_make_the_kernel_reassemble(case: str, rule: str | int, tmp_path: Path) -> None:
    family = FAMILIES[case]
    words = OF_FAMILY[family][rule] if isinstance(rule, int) else rule
    text = written(words)
    assert reassembles(read_ruleset(text.encode(), name="rules", family=family)) is (words not in WITHOUT)
    rules = tmp_path / "rules"
    rules.write_text(text)
    options = ["--family", family.value, "--corpus", str(CASES / case / "flows.jsonl")]
    node = "fragments" if family is Family.IP else "six"
    options += ["--node", str(CASES.parent / "rulesets" / node / "node.json")]
    only = [word for flow in ("whole", "first", "last", "local-last") for word in ("--only", flow)]
    command = ["diff", str(rules), *options, *only, "--backends", "simulator,iptables-legacy"]
    assert main(command) == 0


REASSEMBLING = {
    "a listening socket": "-A PREROUTING -m socket -j ACCEPT",
    "a transparent socket": "-A PREROUTING -p udp -m socket --transparent --nowildcard -j MARK --set-mark 1",
    "no effect": "-A PREROUTING -m socket",
    "no packets": ":UNUSED - [0:0]\n-A UNUSED -p tcp -j TPROXY --on-port 9 --tproxy-mark 1",
}


@pytest.mark.parametrize("level", [0, pytest.param(1, marks=pytest.mark.slow), 2])
@pytest.mark.parametrize("rules", REASSEMBLING.values(), ids=REASSEMBLING)
@pytest.mark.parametrize("case", FAMILIES)
def test_translations_reassemble_without_conntrack(
    case: str, rules: str, level: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``-m socket`` and TPROXY reassemble, also where passes remove their rules."""
    path = tmp_path / "rules"
    hops = "-m ttl --ttl-eq 9" if case == "fragments" else "-m hl --hl-eq 9"
    path.write_text(f"*mangle\n{rules}\nCOMMIT\n*filter\n-A FORWARD {hops} -j DROP\nCOMMIT\n")
    node = "fragments" if case == "fragments" else "six"
    command = ["diff", str(path), "--family", FAMILIES[case].value, f"-O{level}"]
    command += ["--corpus", str(CASES / case / "flows.jsonl")]
    command += ["--node", str(CASES.parent / "rulesets" / node / "node.json")]
    command += [word for flow in ("whole", "first", "last") for word in ("--only", flow)]
    assert main([*command, "--backends", "simulator,iptables-legacy,nftables"]) == 0
    assert "known limit" not in capsys.readouterr().err
