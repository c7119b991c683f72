"""Rules that a flowtable may keep later packets from, and rules that it may not."""

from __future__ import annotations

import pytest

from translate.ir import Program
from translate.nft.limits.offload import refused_offloads
from translate.passes import lower
from translate.read import read_ipsets, read_ruleset, with_sets

DEVICES = frozenset({"eth0", "eth1"})


def program(table: str, *lines: str, level: int = 0) -> Program:
    text = "\n".join((f"*{table}", *lines, "COMMIT", ""))
    return lower(read_ruleset(text.encode(), name="rules"), level=level)


def refused(table: str, *lines: str, unchecked: bool = True, level: int = 0) -> list[tuple[int, str]]:
    refusals = refused_offloads(program(table, *lines, level=level), DEVICES, unchecked=unchecked)
    return [(refusal.origin.line, refusal.feature) for refusal in refusals]


ACCEPTING = [
    "-m conntrack --ctstate NEW -j DROP",
    "-m conntrack --ctstate INVALID -j DROP",
    "-m conntrack ! --ctstate RELATED,ESTABLISHED -j LOG",
    "-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP",
    "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
    "-m mark --mark 0x4000/0x4000 -j ACCEPT",
    "-s 10.0.0.0/8 -j ACCEPT",
    "-p icmp -j DROP",
    "-p icmp -m limit --limit 1/s -j ACCEPT",
    "-p sctp -j MARK --set-mark 1",
    "-i wlan0 -j DROP",
    "! -i eth+ -j DROP",
    "! -o eth+ -j DROP",
    "-f -j DROP",
    "-m ttl --ttl-lt 2 -j DROP",
    "-m statistic --mode random --probability 0.5 -j ACCEPT",
    "-p tcp -m tcp --tcp-flags FIN,RST FIN -j DROP",
    "-p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu",
    "-m conntrack --ctstate NEW -m limit --limit 1/s -j ACCEPT",
    "-m conntrack --ctstate NEW -j CONNMARK --set-mark 1",
    "-m conntrack --ctstatus NONE -j DROP",
    "-s 10.0.0.1",
]

REFUSED = [
    "-j DROP",
    "-j REJECT",
    "-s 10.0.0.1 -j DROP",
    "-i eth0 -j DROP",
    "-o eth+ -j DROP",
    "-p udp -j DROP",
    "-m conntrack --ctstate ESTABLISHED -j DROP",
    "-m conntrack ! --ctstate NEW -j DROP",
    "-m conntrack --ctstatus ASSURED -j DROP",
    "-m conntrack --ctstate NEW,DNAT -j DROP",
    "-m length --length 1000: -j DROP",
    "-m ttl --ttl-lt 10 -j DROP",
    "-m dscp --dscp 10 -j DROP",
    "-m limit --limit 10/s -j ACCEPT",
    "-m quota --quota 1000000 -j ACCEPT",
    "-m connbytes --connbytes 1000: --connbytes-dir both --connbytes-mode bytes -j DROP",
    "-m statistic --mode nth --every 10 --packet 0 -j ACCEPT",
    "-m hashlimit --hashlimit-upto 10/s --hashlimit-name h --hashlimit-mode srcip -j ACCEPT",
    "-m connlimit --connlimit-upto 10 -j ACCEPT",
    "-m recent --name r --update --seconds 60 -j ACCEPT",
    "-m nfacct --nfacct-name n",
    "-j LOG",
    "-j NFLOG",
    "-j NFQUEUE --queue-bypass",
    "-p tcp -m tcp --tcp-flags ACK ACK -j DROP",
]

CHANGING = [
    "-j MARK --set-xmark 0x1/0x1",
    "-j CONNMARK --set-xmark 0x1/0x1",
    "-j CONNMARK --save-mark",
    "-j CONNMARK --restore-mark",
    "-j DSCP --set-dscp 10",
    "-j TOS --set-tos 0x10",
    "-j TTL --ttl-set 64",
    "-j TTL --ttl-dec 1",
    "-p tcp -m tcp --tcp-flags SYN,RST NONE -j TCPOPTSTRIP --strip-options 8",
]


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("rule", ACCEPTING)
def test_rules_that_later_packets_do_not_meet_or_that_accept(rule: str, level: int) -> None:
    table = "mangle" if "TCPMSS" in rule or "MARK --set" in rule else "filter"
    assert refused(table, ":FORWARD ACCEPT [0:0]", f"-A FORWARD {rule}", level=level) == []


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("rule", REFUSED)
def test_rules_that_later_packets_meet(rule: str, level: int) -> None:
    assert refused("filter", ":FORWARD ACCEPT [0:0]", f"-A FORWARD {rule}", level=level) == [(3, "flowtable")]


@pytest.mark.parametrize("chain", ["PREROUTING", "FORWARD", "POSTROUTING"])
@pytest.mark.parametrize("rule", CHANGING)
def test_changes_of_later_packets(rule: str, chain: str) -> None:
    assert refused("mangle", f":{chain} ACCEPT [0:0]", f"-A {chain} {rule}") == [(3, "flowtable")]


@pytest.mark.parametrize("chain", ["INPUT", "OUTPUT"])
@pytest.mark.parametrize("rule", CHANGING)
def test_packets_of_the_node_itself_are_not_offloaded(rule: str, chain: str) -> None:
    assert refused("mangle", f":{chain} ACCEPT [0:0]", f"-A {chain} {rule}") == []


def test_a_priority() -> None:
    lines = (":FORWARD ACCEPT [0:0]", "-A FORWARD -j CLASSIFY --set-class 1:1")
    assert refused("mangle", *lines) == [(3, "flowtable")]


def test_a_set() -> None:
    text = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m set --match-set s src -j {}\nCOMMIT\n"
    sets = read_ipsets(b"create s hash:ip family inet\nadd s 10.0.0.1\n", name="sets")
    for target, count in (("ACCEPT", 0), ("DROP", 1)):
        ruleset = with_sets(read_ruleset(text.format(target).encode(), name="rules"), sets)
        assert len(refused_offloads(lower(ruleset, level=0), DEVICES, unchecked=True)) == count


def test_before_conntrack_no_state_is_known() -> None:
    lines = (":PREROUTING ACCEPT [0:0]", "-A PREROUTING -p udp -j CT --notrack")
    assert refused("raw", *lines) == [(3, "flowtable")]
    state = "-A PREROUTING -m conntrack --ctstate NEW -j DROP"
    assert refused("raw", ":PREROUTING ACCEPT [0:0]", state) == [(3, "flowtable")]


def test_a_policy_that_drops_needs_a_rule_that_accepts() -> None:
    assert refused("filter", ":FORWARD DROP [0:0]") == [(2, "flowtable")]
    accept = "-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT"
    assert refused("filter", ":FORWARD DROP [0:0]", accept) == []
    part = f"{accept} -s 10.0.0.0/8".replace("-j ACCEPT -s 10.0.0.0/8", "-s 10.0.0.0/8 -j ACCEPT")
    assert refused("filter", ":FORWARD DROP [0:0]", part) == [(2, "flowtable")]


def test_rules_behind_a_certain_verdict_are_not_met() -> None:
    rules = ("-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT", "-A FORWARD -j DROP")
    assert refused("filter", ":FORWARD ACCEPT [0:0]", *rules) == []
    assert refused("filter", ":FORWARD ACCEPT [0:0]", *reversed(rules)) == [(3, "flowtable")]


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize(
    ("jump", "ends", "refusals"),
    [
        ("-j", "-j ACCEPT", []),
        ("-j", "-j RETURN", [(5, "flowtable")]),
        ("-j", "-s 10.0.0.1 -j ACCEPT", [(5, "flowtable")]),
        ("-g", "-j RETURN", [(2, "flowtable")]),
        ("-g", "-j ACCEPT", []),
    ],
)
def test_verdicts_of_called_chains(jump: str, ends: str, refusals: list[tuple[int, str]], level: int) -> None:
    lines = (":FORWARD DROP [0:0]", ":called - [0:0]", f"-A FORWARD {jump} called", "-A FORWARD -j DROP")
    assert refused("filter", *lines, f"-A called {ends}", level=level) == refusals


def test_a_chain_that_only_other_packets_reach() -> None:
    lines = (":FORWARD ACCEPT [0:0]", ":new - [0:0]", "-A FORWARD -m conntrack --ctstate NEW -j new")
    assert refused("filter", *lines, "-A new -j DROP") == []


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_lookup_of_states(level: int) -> None:
    """At -O1 the rules are one lookup, of which a later packet finds one entry."""
    rules = [f"-A FORWARD -m conntrack --ctstate {state} -j DROP" for state in ("NEW", "INVALID")]
    accept = "-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"
    assert refused("filter", ":FORWARD DROP [0:0]", *rules, accept, level=level) == []
    assert refused("filter", ":FORWARD DROP [0:0]", *rules, level=level) == [(2, "flowtable")]


@pytest.mark.parametrize("level", [0, 1, 2])
def test_packets_that_conntrack_finds_invalid(level: int) -> None:
    lines = (":FORWARD ACCEPT [0:0]", "-A FORWARD -m conntrack --ctstate INVALID -j DROP")
    assert refused("filter", *lines, unchecked=False, level=level) == [(3, "flowtable-invalid")]
    only = (":FORWARD DROP [0:0]", "-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT")
    assert refused("filter", *only, unchecked=False, level=level) == [(2, "flowtable-invalid")]
    assert refused("filter", ":FORWARD ACCEPT [0:0]", unchecked=False, level=level) == []


def test_nat_does_not_apply_to_invalid_packets() -> None:
    lines = (":PREROUTING ACCEPT [0:0]", "-A PREROUTING -d 10.9.0.1 -p tcp -j DNAT --to-destination 10.0.0.1")
    assert refused("nat", *lines, unchecked=False) == [(3, "flowtable-invalid")]
    assert refused("nat", *lines, unchecked=True) == []


def test_a_second_syn() -> None:
    clamp = "-A FORWARD -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu"
    refusals = refused("mangle", ":FORWARD ACCEPT [0:0]", clamp, unchecked=False)
    assert refusals == [(3, "flowtable"), (3, "flowtable-invalid")]
