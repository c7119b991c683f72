from __future__ import annotations

import pytest

from harness.corpus.reachability import dead_ends, unreachable_rules
from translate.ir import Family
from translate.read import read_ruleset


def unreachable(rules: str, *, table: str = "filter") -> dict[int, str]:
    """Numbers of unreachable rules, counted from 1 over the whole text, with the reason."""
    chains = sorted({w for line in rules.splitlines() for w in line.split() if w.startswith("c")})
    declared = "".join(f":{c} - [0:0]\n" for c in chains)
    builtin = {"filter": ("INPUT", "FORWARD", "OUTPUT"), "nat": ("PREROUTING", "POSTROUTING")}[table]
    head = f"*{table}\n" + "".join(f":{b} ACCEPT [0:0]\n" for b in builtin) + declared
    text = head + rules + "COMMIT\n"
    ruleset = read_ruleset(text.encode(), name="t")
    skip = head.count("\n")
    lines = {
        (t.name.value, c.name, i): r.origin.line - skip
        for t in ruleset.tables
        for c in t.chains
        for i, r in enumerate(c.rules)
    }
    return {lines[key]: reason for key, reason in unreachable_rules(ruleset).items()}


def test_nothing_calls_it() -> None:
    found = unreachable("-A c1 -j ACCEPT\n-A c2 -j c1\n")
    assert found[2] == "no rule jumps to chain c2"
    assert "only unreachable rules jump to chain c1: c2" in found[1]


@pytest.mark.parametrize(
    "first",
    ["-j ACCEPT", "-j DROP", "-j REJECT", "-g c1", "-s 10.0.0.0/8 -j DROP", "-p tcp -j DROP"],
)
def test_behind_a_rule_that_takes_it(first: str) -> None:
    found = unreachable(
        f"-A FORWARD {first}\n-A FORWARD -s 10.1.0.0/16 -p tcp -m tcp --dport 80 -j ACCEPT\n-A c1 -j ACCEPT\n"
    )
    assert set(found) - {3} == {2}
    assert "which comes first, takes" in found[2]


@pytest.mark.parametrize(
    "first",
    [
        "-j c1",
        "-s 10.1.2.0/24 -j DROP",
        "! -s 10.1.0.0/16 -j DROP",
        "-p udp -j DROP",
        "-i eth0 -j DROP",
        "-m mark --mark 1 -j DROP",
        "-p tcp -m tcp --dport 79 -j DROP",
    ],
)
def test_behind_a_rule_that_leaves_some(first: str) -> None:
    text = (
        f"-A FORWARD {first}\n-A FORWARD -s 10.1.0.0/16 -p tcp -m tcp --dport 80 -j ACCEPT\n-A c1 -j RETURN\n"
    )
    assert 2 not in unreachable(text)


def test_behind_a_rule_of_a_chain_called_before() -> None:
    calls = "-A FORWARD -p tcp -j c1\n-A FORWARD -s 10.1.0.0/16 -p tcp -j c2\n"
    inner = "-A c1 -d 10.9.0.0/16 -j DROP\n-A c2 -d 10.9.9.9/32 -j ACCEPT\n-A c2 -d 10.8.8.8/32 -j ACCEPT\n"
    found = unreachable(calls + inner)
    assert found == {4: "line 9, which comes first, takes every such packet in c1"}


@pytest.mark.parametrize(
    ("calls", "inner"),
    [
        ("-A FORWARD -p udp -j c1\n-A FORWARD -j c2\n", "-A c1 -d 10.9.0.0/16 -j DROP\n"),
        ("-A FORWARD -j c1\n-A FORWARD -j c2\n", "-A c1 -p udp -j RETURN\n-A c1 -d 10.9.0.0/16 -j DROP\n"),
        ("-A FORWARD -j c1\n-A FORWARD -j c2\n", "-A c1 -d 10.9.0.0/16 -j RETURN\n"),
        ("-A FORWARD -j c1\n-A FORWARD -j c2\n-A INPUT -j c2\n", "-A c1 -d 10.9.0.0/16 -j DROP\n"),
        ("-A FORWARD -j c2\n-A FORWARD -j c1\n", "-A c1 -d 10.9.0.0/16 -j DROP\n"),
    ],
)
def test_a_chain_called_before_that_leaves_some(calls: str, inner: str) -> None:
    text = f"{calls}{inner}-A c2 -d 10.9.9.9/32 -j ACCEPT\n"
    assert text.count("\n") not in unreachable(text)


def test_a_chain_that_never_returns() -> None:
    found = unreachable(
        "-A FORWARD -j c1\n-A FORWARD -p tcp -j ACCEPT\n-A c1 -p udp -j DROP\n-A c1 -j ACCEPT\n"
    )
    assert set(found) == {2}
    returns = unreachable(
        "-A FORWARD -j c1\n-A FORWARD -p tcp -j ACCEPT\n-A c1 -p udp -j RETURN\n-A c1 -j ACCEPT\n"
    )
    assert returns == {}


def test_a_rule_that_contradicts_itself_or_its_way_in() -> None:
    found = unreachable(
        "-A FORWARD -s 10.0.0.0/8 -j c1\n-A c1 -s 10.1.0.0/16 -j ACCEPT\n-A c1 -s 11.0.0.0/8 -j ACCEPT\n"
    )
    assert set(found) == {3}
    assert "only reached where ip.saddr is 10.0.0.0/8" in found[3]
    two_ways = "-A FORWARD -s 10.0.0.0/8 -j c1\n-A INPUT -s 11.0.0.0/8 -j c1\n-A c1 -s 11.0.0.0/8 -j ACCEPT\n"
    assert unreachable(two_ways) == {}


def test_nat_sees_only_what_begins() -> None:
    found = unreachable(
        "-A PREROUTING -m conntrack --ctstate ESTABLISHED -j ACCEPT\n"
        "-A PREROUTING -m conntrack --ctstate NEW -j ACCEPT\n",
        table="nat",
    )
    assert set(found) == {1}


def test_jumps_into_empty_chains_do_nothing() -> None:
    text = "*filter\n:FORWARD ACCEPT [0:0]\n:e - [0:0]\n-A FORWARD -j e\nCOMMIT\n"
    assert dead_ends(read_ruleset(text.encode(), name="t")) == {("filter", "FORWARD", 0): "chain e is empty"}


def test_many_ways_into_a_chain_prove_nothing_wrong() -> None:
    calls = "".join(f"-A FORWARD -s 10.0.{n}.0/24 -j c1\n" for n in range(100))
    found = unreachable(calls + "-A c1 -s 10.0.99.1/32 -j ACCEPT\n-A c1 -s 10.0.0.1/32 -j ACCEPT\n")
    assert found == {}


def test_ipv6_addresses_are_wider() -> None:
    rules = "-A FORWARD ! -s ::/96 -j ACCEPT\n-A FORWARD ! -s ::1/128 -j DROP\n"
    text = f"*filter\n:FORWARD ACCEPT [0:0]\n{rules}COMMIT\n"
    ruleset = read_ruleset(text.encode(), name="six", family=Family.IP6)
    assert unreachable_rules(ruleset) == {}
    wider = text.replace("::/96", "::1/128")
    assert list(unreachable_rules(read_ruleset(wider.encode(), name="six", family=Family.IP6))) == [
        ("filter", "FORWARD", 1)
    ]
