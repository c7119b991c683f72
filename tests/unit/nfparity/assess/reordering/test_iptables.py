"""The effects that iptables rules may have on a packet."""

from __future__ import annotations

import pytest

from nfparity.assess.reordering.iptables import iptables_effects
from nfparity.assess.reordering.packets import Effect, EffectKind, Possible
from translate.ir import Family, Field, parse_address
from translate.read import read_ruleset

DROP, REJECT, OTHER = (Effect(kind) for kind in (EffectKind.DROP, EffectKind.REJECT, EffectKind.OTHER))
PACKET = Possible(
    numbers={
        Field.L4PROTO: {6},
        Field.SADDR: {parse_address(Family.IP, "10.0.0.1")},
        Field.DADDR: {parse_address(Family.IP, a) for a in ("10.244.0.5", "10.244.1.5")},
        Field.DPORT: {80},
    },
    mark_bits=0,
)


def effects(*rules: str, policy: str = "ACCEPT") -> set[Effect]:
    chains = "".join(f":{name} - [0:0]\n" for name in ("A", "B"))
    lines = "".join(f"-A {rule}\n" for rule in rules)
    text = f"*mangle\n:FORWARD {policy} [0:0]\n{chains}{lines}COMMIT\n"
    (table,) = read_ruleset(text.encode(), name="rules").tables
    chain = next(chain for chain in table.chains if chain.name == "FORWARD")
    return set(iptables_effects(table, chain, PACKET))


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("FORWARD -j ACCEPT", set()),
        ("FORWARD -j LOG", set()),
        ("FORWARD", set()),
        ("FORWARD -s 10.0.0.2/32 -j DROP", set()),
        ("FORWARD -p udp -j DROP", set()),
        ("FORWARD -p tcp -m tcp --dport 443 -j DROP", set()),
        ("FORWARD -m mark --mark 0x1/0x1 -j DROP", set()),
        ("FORWARD -d 10.244.0.0/24 -j DROP", {DROP}),
        ("FORWARD -o eth0 -j DROP", {DROP}),
        ("FORWARD -m statistic --mode random --probability 0.5 -j DROP", {DROP}),
        ("FORWARD -j MARK --set-xmark 0x8/0x8", {Effect(EffectKind.MARK, 8)}),
        ("FORWARD -j CONNMARK --restore-mark", {Effect(EffectKind.OTHER, 0xFFFFFFFF)}),
        ("FORWARD -j TTL --ttl-set 3", {OTHER}),
        ("FORWARD -m limit --limit 5/sec", {OTHER}),
        ("FORWARD -s 10.0.0.2/32 -m recent --set --name x", set()),
        ("FORWARD -m recent --set --name x", {OTHER}),
    ],
)
def test_effects_of_one_rule(rule: str, wanted: set[Effect]) -> None:
    assert effects(rule) == wanted


def test_rules_after_a_certain_verdict_have_no_effect() -> None:
    assert not effects("FORWARD -j A", "FORWARD -j DROP", "A -d 10.244.0.0/16 -j ACCEPT")
    assert effects("FORWARD -j A", "FORWARD -j DROP", "A -d 10.244.0.0/24 -j ACCEPT") == {DROP}
    assert not effects("FORWARD -j A", "A -d 10.244.0.0/16 -j RETURN", "A -j DROP")
    assert effects(
        "FORWARD -j A", "FORWARD -j DROP", "A -d 10.244.0.0/16 -j RETURN", "A -j TTL --ttl-set 3"
    ) == {DROP}
    assert not effects("FORWARD -g A", "FORWARD -j DROP", "A -j B")


def test_a_policy_is_an_effect() -> None:
    assert effects(policy="DROP") == {DROP}


def test_parts_that_are_not_modelled_may_do_anything() -> None:
    assert OTHER in effects("FORWARD -j NFQUEUE --queue-num 1")
    assert OTHER in effects("FORWARD -m osf --genre Linux -j DROP")
