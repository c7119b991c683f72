"""The rules that remain without kube-proxy's."""

from __future__ import annotations

from collections.abc import Callable

from nfparity.assess.node.facts import Facts
from translate.ir import Hook, TableName

Made = Callable[..., Facts]


def with_filter(text: str, rules: str = "", *, forward: str = "ACCEPT", chains: str = "") -> str:
    text = text.replace(
        ":FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [5:1912]\n:KUBE-EX",
        f":FORWARD {forward} [0:0]\n:OUTPUT ACCEPT [5:1912]\n{chains}:KUBE-EX",
    )
    return text.replace("-A KUBE-EXTERNAL-SERVICES", f"{rules}-A KUBE-EXTERNAL-SERVICES", 1)


def test_nothing_stays_of_a_node_with_kube_proxy_alone(facts: Facts) -> None:
    assert facts.other_rules.ruleset.tables == ()
    assert not facts.other_rules.intruders
    assert not facts.other_rules.denials


def test_a_policy_that_drops_stays_and_denies(text: str, made: Made) -> None:
    other_rules = made(with_filter(text, forward="DROP")).other_rules
    (denial,) = other_rules.denials
    assert (denial.hook, denial.rule) == (Hook.FORWARD, None)
    (table,) = other_rules.ruleset.tables
    assert table.name is TableName.FILTER
    assert not any(chain.rules for chain in table.chains)


def test_a_last_rule_that_drops_all_denies(text: str, made: Made) -> None:
    other_rules = made(with_filter(text, "-A FORWARD -j DROP\n")).other_rules
    (denial,) = other_rules.denials
    assert denial.rule is not None
    assert other_rules.drops


def test_a_rule_that_drops_some_drops_but_does_not_deny(text: str, made: Made) -> None:
    other_rules = made(with_filter(text, "-A FORWARD -s 10.9.9.0/24 -j DROP\n")).other_rules
    assert other_rules.drops
    assert not other_rules.denials


def test_a_guest_in_a_chain_of_kube_proxys_goes_with_it(text: str, made: Made) -> None:
    assert not made(with_filter(text, "-A KUBE-FORWARD -s 10.9.9.0/24 -j DROP\n")).other_rules.ruleset.tables


def test_a_jump_to_a_chain_of_kube_proxys_finds_it_empty(text: str, made: Made) -> None:
    other_rules = made(with_filter(text, "-A FORWARD -s 10.9.9.0/24 -j KUBE-SERVICES\n")).other_rules
    table = other_rules.ruleset.table(TableName.FILTER)
    assert table is not None
    chain = table.chain("KUBE-SERVICES")
    assert chain is not None
    assert chain.rules == ()
    assert len(other_rules.intruders) == 1
    assert "stays, without rules," in other_rules.notes[0]


def test_a_rule_about_the_mark_is_an_intruder(text: str, made: Made) -> None:
    asks = "-A FORWARD -m mark --mark 0x4000/0x4000 -j DROP\n"
    other = "-A FORWARD -m mark --mark 0x8000/0x8000 -j DROP\n"
    assert len(made(with_filter(text, asks)).other_rules.askers) == 1
    assert not made(with_filter(text, other)).other_rules.intruders


def test_a_kubelet_keeps_the_guard_of_localhost(text: str, made: Made) -> None:
    other_rules = made(with_filter(text, chains=":KUBE-KUBELET-CANARY - [0:0]\n")).other_rules
    table = other_rules.ruleset.table(TableName.FILTER)
    assert table is not None
    guard = table.chain("KUBE-FIREWALL")
    assert guard is not None
    assert len(guard.rules) == 1
    assert any("kubelet" in note for note in other_rules.notes)
