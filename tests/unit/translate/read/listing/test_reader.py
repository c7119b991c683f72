"""Listings mean what the same rules mean in iptables-save, and what they hide is said."""

# ruff: noqa: E501  # listings are wide

from __future__ import annotations

import pytest

from translate.errors import ParseError
from translate.ir import (
    Accept,
    Action,
    Counters,
    Family,
    Field,
    Goto,
    Hidden,
    Jump,
    Ruleset,
    TableName,
    Unknown,
)
from translate.read import InputForm, read_ruleset

_TOP = "Chain KUBE-SERVICES (2 references)\ntarget     prot opt source               destination\n"
_TOP_V = "Chain KUBE-SERVICES (2 references)\n pkts bytes target     prot opt in     out     source               destination\n"
_HIDES = Unknown(
    "the listing hides interfaces (iptables -L without -v)", Hidden.TESTS, (Field.IIF, Field.OIF)
)


def _read(text: str, table: TableName | None = TableName.NAT, family: Family | None = None) -> Ruleset:
    return read_ruleset(text.encode(), name="rules", family=family, form=InputForm.LISTING, table=table)


def _only(ruleset: Ruleset, chain: str = "KUBE-SERVICES"):
    found = ruleset.tables[0].chain(chain)
    assert found is not None
    assert len(found.rules) == 1
    return found.rules[0]


def _saved(rule: str, table: str = "nat", chains: str = ""):
    text = f"*{table}\n:KUBE-SERVICES - [0:0]\n:X - [0:0]\n-A KUBE-SERVICES {rule}\nCOMMIT\n"
    return read_ruleset(text.encode(), name="saved").tables[0].chains[0].rules[0]


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ("X all  --  anywhere anywhere", "-j X"),
        (
            "X  tcp  -- !172.18.1.0/24  10.0.62.222  /* a/b cluster IP */ tcp dpt:https",
            '! -s 172.18.1.0/24 -d 10.0.62.222 -p tcp -m comment --comment "a/b cluster IP" -m tcp --dport 443 -j X',
        ),
        ("X  udp  --  0.0.0.0/0  10.0.0.10 udp dpt:domain", "-d 10.0.0.10 -p udp -m udp --dport 53 -j X"),
        ("X  17  --  0.0.0.0/0  10.0.0.10 udp dpt:53", "-d 10.0.0.10 -p udp -m udp --dport 53 -j X"),
        ("X  tcp -- anywhere anywhere tcp spts:1:9 dpt:!80", "-p tcp -m tcp --sport 1:9 ! --dport 80 -j X"),
        ("DNAT tcp -- anywhere anywhere tcp to:1.2.3.4:53", "-p tcp -m tcp -j DNAT --to-destination 1.2.3.4:53"),
        ("MARK all -- anywhere anywhere MARK or 0x4000", "-j MARK --or-mark 0x4000"),
        ("MARK all -- anywhere anywhere MARK xset 0x4000/0x0", "-j MARK --set-xmark 0x4000/0x0"),
        ("MARK all -- anywhere anywhere MARK and 0xffffbfff", "-j MARK --and-mark 0xffffbfff"),
        ("RETURN all -- anywhere anywhere mark match ! 0x4000/0x4000", "-m mark ! --mark 0x4000/0x4000 -j RETURN"),
        ("X all -- anywhere anywhere ADDRTYPE match dst-type !LOCAL", "-m addrtype ! --dst-type LOCAL -j X"),
        (
            "X all -- anywhere anywhere statistic mode random probability 0.33333333349",
            "-m statistic --mode random --probability 0.33333333349 -j X",
        ),
        ("RETURN all -- anywhere 127.0.0.0/8 ! ctstate RELATED,DNAT", "-d 127.0.0.0/8 -m conntrack ! --ctstate RELATED,DNAT -j RETURN"),
        ("X all -- anywhere anywhere match-set KUBE-CLUSTER-IP dst,dst", "-m set --match-set KUBE-CLUSTER-IP dst,dst -j X"),
        ("X all -- anywhere anywhere ! match-set A src", "-m set ! --match-set A src -j X"),
        (
            "X all -- anywhere anywhere recent: CHECK seconds: 10800 reap name: L side: source mask: 255.255.255.255",
            "-m recent --rcheck --seconds 10800 --reap --name L --rsource --mask 255.255.255.255 -j X",
        ),
        ("X tcp -- anywhere anywhere multiport dports 80,443", "-p tcp -m multiport --dports 80,443 -j X"),
        ("X icmp -- anywhere anywhere icmptype 8 code 0", "-p icmp -m icmp --icmp-type 8/0 -j X"),
        ("X icmp -- anywhere anywhere icmp echo-request", "-p icmp -m icmp --icmp-type echo-request -j X"),
        ("X tcp -- anywhere anywhere tcp flags:0x17/0x02", "-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -j X"),
        ("X all -f  anywhere anywhere", "-f -j X"),
        ("X !tcp --  anywhere anywhere", "! -p tcp -j X"),
        ("X all  --  anywhere anywhere [goto] ", "-g X"),
        ("         all  --  10.0.0.0/8 anywhere", "-s 10.0.0.0/8"),
        ("MASQUERADE tcp -- anywhere anywhere masq ports: 1024-2048 random-fully", "-p tcp -j MASQUERADE --to-ports 1024-2048 --random-fully"),
    ],
)  # fmt: skip
def test_a_row_means_what_the_saved_rule_means(row, rule):
    listed = _only(_read(f"{_TOP}{row}\n"))
    saved = _saved(rule)
    assert (listed.tests, listed.actions, listed.comment) == (saved.tests, saved.actions, saved.comment)
    assert listed.unknown == (_HIDES,)


def test_goto_is_told_from_jump():
    assert _only(_read(f"{_TOP}X all -- anywhere anywhere [goto]\n")).actions == (Goto("X"),)
    assert _only(_read(f"{_TOP}X all -- anywhere anywhere\n")).actions == (Jump("X"),)


def test_verbose_listings_hide_no_interface():
    rule = _only(_read(f"{_TOP_V}   12   720 X  all  --  eth0 !cni0  0.0.0.0/0  0.0.0.0/0\n"))
    saved = _saved("-i eth0 ! -o cni0 -j X")
    assert (rule.tests, rule.unknown, rule.counters) == (saved.tests, (), Counters(12, 720))


def test_rounded_counters_are_not_taken_for_exact():
    assert _only(_read(f"{_TOP_V}  12K  1M X all -- * * 0.0.0.0/0 0.0.0.0/0\n")).counters is None


def test_line_numbers_are_passed_over():
    text = "Chain X (0 references)\nnum  target     prot opt source   destination\n1    DROP  tcp  --  anywhere  anywhere\n"
    assert _only(_read(text, None), "X").target.name == "DROP"


def test_a_host_name_is_unknown():
    rule = _only(_read(f"{_TOP}X all -- node1.example.org anywhere\n"))
    assert rule.tests == ()
    unknown = Unknown('the source "node1.example.org" is printed by name', Hidden.TESTS, (Field.SADDR,))
    assert unknown in rule.unknown


def test_chains_that_are_not_shown_are_hidden():
    table = _read(f"{_TOP}X all -- anywhere anywhere\n").tables[0]
    assert [c.name for c in table.chains if c.is_hidden] == [
        "PREROUTING",
        "INPUT",
        "OUTPUT",
        "POSTROUTING",
        "X",
    ]


def test_ip6_with_a_blank_opt_column():
    ruleset = _read(f"{_TOP}X  tcp      !fd00::/64  fd01::1/128  tcp dpt:80\n")
    assert ruleset.family is Family.IP6
    text = (
        "*nat\n:KUBE-SERVICES - [0:0]\n:X - [0:0]\n"
        "-A KUBE-SERVICES ! -s fd00::/64 -d fd01::1/128 -p tcp -m tcp --dport 80 -j X\nCOMMIT\n"
    )
    saved = read_ruleset(text.encode(), name="saved").tables[0].chains[0].rules[0]
    assert _only(ruleset).tests == saved.tests


def test_the_table_follows_from_a_target():
    assert _read(f"{_TOP}MASQUERADE all -- anywhere anywhere\n", None).tables[0].name is TableName.NAT


def test_the_default_table_is_said():
    ruleset = _read(f"{_TOP}DROP all -- anywhere anywhere\n", None)
    assert ruleset.tables[0].name is TableName.FILTER
    assert "the default of iptables" in ruleset.unknown[0]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "rules", "no chain in this listing"),
        ("target prot opt source destination\n", "rules:1", "without the header of a chain"),
        ("X all -- anywhere anywhere\n", "rules:1", "a rule without the header of its chain"),
        ("Chain X (1 refer\n", "rules:1", "the header of a chain is damaged"),
        ("Chain X (1 references)\n", "rules:1", "cut after this header"),
        ("Chain X (1 references)\nX all -- anywhere anywhere\n", "rules:2", "a rule without column names before it"),
        (f"{_TOP}X all -- anywhere\n", "rules:3", "ends before its destination"),
        (f"{_TOP}X all\n", "rules:3", "ends before its destination"),
        (f"{_TOP}KUBE-MARK-M\n", "rules:3", "a target and a protocol were expected"),
        (f"{_TOP}X all -- .0.0.0/0 anywhere\n", "rules:3", "is not an IPv4 address"),
        (f"{_TOP}X tcp -- anywhere anywhere tcp dpt:htt\n", "rules:3", 'unknown port "htt"'),
        (f"{_TOP}...\n", "rules:3", "a target and a protocol"),
        (f"{_TOP}X all -- anywhere anywhere\n\n{_TOP}", "rules:5", "listed twice with a difference"),
        ("Chain FORWARD (policy ACCEPT)\ntarget prot opt source destination\n", "rules:1", "no built-in chain"),
        (f"{_TOP_V}X all -- anywhere anywhere\n", "rules:3", "packets and bytes were expected"),
    ],
)  # fmt: skip
def test_bad_listings_are_reported_with_their_place(text, place, message):
    with pytest.raises(ParseError) as caught:
        _read(text)
    found = caught.value.diagnostics[0]
    assert found.origin.place == place
    assert message in found.message


def test_a_table_that_cannot_hold_it_is_reported():
    text = "Chain FORWARD (policy ACCEPT)\ntarget prot opt source destination\nMASQUERADE all -- anywhere anywhere\n"
    with pytest.raises(ParseError, match="no table can have all"):
        _read(text, None)


@pytest.mark.parametrize(
    ("row", "action", "hides"),
    [
        ("ACCEPT tcp -- anywhere anywhere tcp dpt:22 vproto 3", Accept(), {Hidden.TESTS}),
        ("X all -- anywhere anywhere /* cut com", Jump("X"), {Hidden.TESTS}),
        ("X all -- anywhere anywhere [goto]  vproto 3", Goto("X"), {Hidden.TESTS}),
        ("HMARK all -- anywhere anywhere HMARK mod 5 0x0", None, {Hidden.TESTS, Hidden.ACTION}),
        (
            "DNAT tcp -- anywhere anywhere vproto 3 to:10.0.0.1:80",
            None,
            {Hidden.TESTS, Hidden.ACTION},
        ),
        (" all -- anywhere anywhere vproto 3", None, {Hidden.TESTS}),
    ],
)
def test_what_is_not_modelled_may_match(row: str, action: Action | None, hides: set[Hidden]) -> None:
    text = f"{_TOP}{row}\n\nChain X (1 references)\ntarget prot opt source destination\n"
    ruleset = read_ruleset(text.encode(), name="rules", form=InputForm.LISTING, family=Family.IP)
    (rule,) = next(c for t in ruleset.tables for c in t.chains if c.name == "KUBE-SERVICES").rules
    assert rule.actions == (() if action is None else (action,))
    assert {one.hides for one in rule.unknown if one.reason != _HIDES.reason} == hides
    assert any("is not modelled" in one.reason for one in rule.unknown)


@pytest.mark.parametrize("amount", ["²", "٣", "9" * 5000])
def test_what_only_looks_like_a_counter_is_none(amount: str) -> None:
    row = f"{amount} 0 ACCEPT all -- * * 0.0.0.0/0 0.0.0.0/0\n"
    try:
        ruleset = read_ruleset((_TOP_V + row).encode(), name="rules", form=InputForm.LISTING)
    except ParseError:
        return
    assert all(r.counters is None for t in ruleset.tables for c in t.chains for r in c.rules)
