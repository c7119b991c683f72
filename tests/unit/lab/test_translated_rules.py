"""Rulesets of single rules."""

from __future__ import annotations

from tests.lab.translated_rules import single_rules
from translate.ir import Drop
from translate.read import read_ruleset

RULES = b"""\
*filter
:INPUT DROP [0:0]
:FORWARD ACCEPT [0:0]
:first - [0:0]
:second - [0:0]
-A INPUT -j first
-A FORWARD -p tcp -j first
-A first -s 10.0.0.1 -g second
-A first -p udp -j ACCEPT
-A second -m mark --mark 1
COMMIT
"""


def test_a_rule_comes_with_the_jumps_that_lead_to_it() -> None:
    singles = list(single_rules(read_ruleset(RULES, name="rules")))
    assert [rule.origin.line for rule, _ in singles] == [9, 10]
    lines = [[r.origin.line for r in ruleset.rules()] for _, ruleset in singles]
    assert lines == [[6, 9], [6, 8, 10]]


def test_a_rule_without_a_target_drops() -> None:
    _, ruleset = list(single_rules(read_ruleset(RULES, name="rules")))[-1]
    assert [rule.actions for rule in ruleset.rules()][-1] == (Drop(),)
