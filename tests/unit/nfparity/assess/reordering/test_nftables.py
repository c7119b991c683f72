"""The effects that rules of an nftables table may have on a packet."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from nfparity.assess.reordering.nftables import NftEffects
from nfparity.assess.reordering.packets import NOT_LOCAL, Effect, EffectKind, Possible
from translate.ir import Family, Field, parse_address
from translate.nftlisting import base_chains, read_listing

DROP, REJECT, OTHER = (Effect(kind) for kind in (EffectKind.DROP, EffectKind.REJECT, EffectKind.OTHER))
PACKET = Possible(
    numbers={
        Field.L4PROTO: {6},
        Field.SADDR: {parse_address(Family.IP, "10.0.0.1")},
        Field.DADDR: {parse_address(Family.IP, a) for a in ("10.244.0.5", "10.244.1.5")},
        Field.DPORT: {80},
        Field.FIB_DADDR_TYPE: NOT_LOCAL,
    },
    names={Field.IIF: {"eth0"}},
    mark_bits=0,
)
MARK: Any = {"meta": {"key": "mark"}}
DROPS: Any = {"drop": None}
PLACE = {"family": "inet", "table": "t"}


def payload(header: str, name: str) -> Any:
    return {"payload": {"protocol": header, "field": name}}


def match(left: Any, right: Any, op: str = "==") -> Any:
    return {"match": {"op": op, "left": left, "right": right}}


def prefix(address: str, length: int) -> Any:
    return {"prefix": {"addr": address, "len": length}}


def table(*rules: tuple[str, list[Any]], sets: Iterable[Any] = (), policy: str = "accept") -> NftEffects:
    base = PLACE | {"name": "c", "type": "filter", "hook": "forward", "prio": 0, "policy": policy}
    objects: list[Any] = [
        {"table": {"family": "inet", "name": "t"}},
        {"chain": base},
        *({"chain": PLACE | {"name": name}} for name in ("a", "b")),
        *({kind: PLACE | entry} for each in sets for kind, entry in each.items()),
        *({"rule": PLACE | {"chain": chain, "expr": expressions}} for chain, expressions in rules),
    ]
    return NftEffects(listing(objects), Family.IP)


def listing(objects: list[Any]) -> Any:
    return read_listing(json.dumps({"nftables": objects}), name="inet t")


def effects(*rules: tuple[str, list[Any]], sets: Iterable[Any] = (), policy: str = "accept") -> set[Effect]:
    base = PLACE | {"name": "c", "type": "filter", "hook": "forward", "prio": 0}
    (chain,) = base_chains(listing([{"table": {"family": "inet", "name": "t"}}, {"chain": base}]))
    return set(table(*rules, sets=sets, policy=policy).of(chain, PACKET))


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ([{"accept": None}], set()),
        ([{"counter": None}, {"log": {"prefix": "x"}}], set()),
        ([match(payload("ip", "saddr"), "10.0.0.2"), DROPS], set()),
        ([match(payload("ip", "saddr"), "10.0.0.1", "!="), DROPS], set()),
        ([match(payload("ip6", "saddr"), "2001:db8::1"), DROPS], set()),
        ([match(payload("udp", "dport"), 80), DROPS], set()),
        ([match(payload("tcp", "dport"), {"range": [81, 90]}), DROPS], set()),
        ([match(payload("th", "dport"), {"set": [53, 443]}), DROPS], set()),
        ([match({"meta": {"key": "l4proto"}}, {"set": ["udp", "sctp"]}), DROPS], set()),
        ([match({"meta": {"key": "iifname"}}, "podman*"), DROPS], set()),
        ([match({"fib": {"result": "type", "flags": ["daddr"]}}, "local"), DROPS], set()),
        ([match({"&": [MARK, 8]}, 8), DROPS], set()),
        ([match({"&": [MARK, 8, 12]}, 8), DROPS], {DROP}),
        ([match({"&": [payload("ip", "saddr"), "0.0.0.255"]}, "0.0.0.9"), DROPS], {DROP}),
        ([match(payload("tcp", "dport"), 80), DROPS], {DROP}),
        ([match(payload("ip", "daddr"), prefix("10.244.0.0", 24)), DROPS], {DROP}),
        ([match(payload("tcp", "dport"), 80, "<"), DROPS], {DROP}),
        ([match({"meta": {"key": "oifname"}}, "eth0"), DROPS], {DROP}),
        ([match({"ct": {"key": "state"}}, "invalid", "in"), DROPS], {DROP}),
        ([{"reject": {"type": "icmpx", "expr": "admin-prohibited"}}], {REJECT}),
        ([{"mangle": {"key": MARK, "value": {"|": [MARK, 8]}}}], {Effect(EffectKind.MARK, 8)}),
        (
            [{"mangle": {"key": MARK, "value": {"ct": {"key": "mark"}}}}],
            {Effect(EffectKind.MARK, 0xFFFFFFFF)},
        ),
        ([{"masquerade": None}], {OTHER}),
        ([{"notrack": None}], {OTHER}),
        ([{"limit": {"rate": 5, "per": "second"}}, {"accept": None}], {OTHER}),
        ([{"unheard of": None}], {OTHER}),
    ],
)
def test_effects_of_one_rule(rule: list[Any], wanted: set[Effect]) -> None:
    if "unheard of" not in rule[0]:
        assert effects(("c", rule)) == wanted
    else:
        assert OTHER in effects(("c", rule))


def test_rules_after_a_certain_verdict_have_no_effect() -> None:
    pods, half = (match(payload("ip", "daddr"), prefix("10.244.0.0", n)) for n in (16, 24))
    jump = ("c", [{"jump": {"target": "a"}}])
    assert not effects(jump, ("c", [DROPS]), ("a", [pods, {"accept": None}]))
    assert effects(jump, ("c", [DROPS]), ("a", [half, {"accept": None}])) == {DROP}
    assert not effects(jump, ("a", [pods, {"return": None}]), ("a", [DROPS]))
    assert effects(jump, ("c", [DROPS]), ("a", [pods, {"return": None}])) == {DROP}
    assert not effects(("c", [{"goto": {"target": "a"}}]), ("c", [DROPS]))


def test_all_verdicts_of_a_map_are_possible() -> None:
    data = {"set": [["10.0.0.9", {"jump": {"target": "a"}}]]}
    vmap = ("c", [{"vmap": {"key": payload("ip", "saddr"), "data": data}}])
    assert effects(vmap, ("a", [DROPS])) == {DROP}
    named = {"map": {"name": "m", "type": "ipv4_addr", "map": "verdict", "elem": [["10.0.0.9", DROPS]]}}
    vmap = ("c", [{"vmap": {"key": payload("ip", "saddr"), "data": "@m"}}])
    assert effects(vmap, sets=[named]) == {DROP}


def test_elements_of_a_set_count_unless_packets_fill_it() -> None:
    other = {"set": {"name": "s", "type": "ipv4_addr", "elem": ["10.0.0.9"]}}
    tested = ("c", [match(payload("ip", "saddr"), "@s"), DROPS])
    assert not effects(tested, sets=[other])
    filling = ("c", [{"set": {"op": "add", "elem": payload("ip", "daddr"), "set": "@s"}}])
    assert effects(tested, filling, sets=[other]) == {DROP, OTHER}


def test_a_policy_is_an_effect() -> None:
    assert effects(policy="drop") == {DROP}


def test_a_table_that_changes_addresses_without_nat_is_noted() -> None:
    rewriting = {"mangle": {"key": payload("ip", "daddr"), "value": "10.0.0.9"}}
    assert table(("c", [rewriting])).readdresses
    assert not table(("c", [{"masquerade": None}])).readdresses
