"""Rules that make the kernel track connections; the simulator's table of them is tested beside it."""

from __future__ import annotations

import pytest

from translate.ir.tracking import reassembles_fragments, tracks_connections
from translate.passes import lower
from translate.read import read_ruleset


@pytest.mark.parametrize(
    ("table", "rule", "needed"),
    [
        ("filter", "-A FORWARD -p udp -m udp --dport 5 -j DROP", False),
        ("raw", "-A PREROUTING -j CT --notrack", False),
        ("nat", "-A PREROUTING -j MARK --set-mark 1", False),
        ("mangle", "-A PREROUTING -m socket", False),
        ("mangle", "-A PREROUTING -p tcp -j TPROXY --on-port 1", False),
        ("raw", "-A PREROUTING -j CT --zone 1", True),
        ("filter", "-A FORWARD -m conntrack --ctstate NEW", True),
        ("filter", "-A FORWARD -p tcp -m connlimit --connlimit-above 5", True),
        ("mangle", "-A PREROUTING -j CONNMARK --save-mark", True),
        ("nat", "-A POSTROUTING -j MASQUERADE", True),
        ("filter", ":UNUSED - [0:0]\n-A UNUSED -m connlabel --label 5", True),
    ],
)
def test_rules_that_need_conntrack(table: str, rule: str, needed: bool) -> None:
    ruleset = read_ruleset(f"*{table}\n{rule}\nCOMMIT\n".encode(), name="rules")
    assert tracks_connections(ruleset) is needed
    assert {lower(ruleset, level=level).tracked for level in (0, 1, 2)} == {needed}


@pytest.mark.parametrize(
    ("rule", "needed"),
    [
        ("-A PREROUTING -m socket", True),
        ("-A PREROUTING -m socket --transparent --nowildcard -j ACCEPT", True),
        ("-A PREROUTING -p tcp -j TPROXY --on-port 1", True),
        (":UNUSED - [0:0]\n-A UNUSED -p tcp -j TPROXY --on-port 1", True),
        ("-A PREROUTING -p udp -m udp --dport 5 -j DROP", False),
        ("-A OUTPUT -m owner --socket-exists", False),
    ],
)
def test_rules_that_only_reassemble(rule: str, needed: bool) -> None:
    ruleset = read_ruleset(f"*mangle\n{rule}\nCOMMIT\n".encode(), name="rules")
    assert reassembles_fragments(ruleset) is needed
    assert {lower(ruleset, level=level).reassembled for level in (0, 1, 2)} == {needed}
