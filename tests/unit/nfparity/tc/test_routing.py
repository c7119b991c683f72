"""Nodes on which the tc program would route packets differently are refused, by rule and line."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from backends.model.node import Node, node_from_json
from backends.tc_ebpf.node.listings import Listings
from nfparity.snapshot.routingrules import UNKNOWN_RULE
from nfparity.tc.routing import check_node, check_this_node
from translate.errors import UnsupportedError
from translate.ir import Ruleset
from translate.read import read_ruleset

PLAIN = {"interfaces": {"eth0": ["192.0.2.2/24"]}}
RULES = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -j REJECT\nCOMMIT\n"


def node(**more: object) -> Node:
    return node_from_json(json.dumps({**PLAIN, **more}), name="node")


@pytest.fixture
def rules() -> Ruleset:
    return read_ruleset(RULES.encode(), name="rules")


def test_a_node_without_routing_rules_takes_all_rules(rules: Ruleset) -> None:
    check_node(node(), rules)


def test_an_unknown_routing_rule_may_match_any_packet(rules: Ruleset) -> None:
    unknown = replace(node(), assumed=(f"{UNKNOWN_RULE} ipproto tcp: the routes are not known",))
    with pytest.raises(UnsupportedError) as caught:
        check_node(unknown, rules)
    (refusal,) = caught.value.refusals
    assert (refusal.origin.line, refusal.feature) == (3, "routing-rules")


def test_a_namespace_without_devices_or_that_routes_as_a_new_one_is_not_read(
    rules: Ruleset, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = replace(node(), assumed=(f"{UNKNOWN_RULE} ipproto tcp: the routes are not known",))
    monkeypatch.setattr("socket.if_nameindex", lambda: [(1, "lo")])
    check_this_node(rules, lambda: unknown)
    monkeypatch.setattr("socket.if_nameindex", lambda: [(1, "lo"), (2, "eth0")])
    monkeypatch.setattr(Listings, "routes_as_a_new_namespace", lambda *_: True)
    check_this_node(rules, lambda: unknown)
    monkeypatch.setattr(Listings, "routes_as_a_new_namespace", lambda *_: False)
    with pytest.raises(UnsupportedError):
        check_this_node(rules, lambda: unknown)


def test_rules_without_a_lookup_are_taken_on_any_node() -> None:
    unknown = replace(node(), assumed=(f"{UNKNOWN_RULE} ipproto tcp: the routes are not known",))
    check_node(unknown, read_ruleset(RULES.replace("REJECT", "DROP").encode(), name="rules"))
