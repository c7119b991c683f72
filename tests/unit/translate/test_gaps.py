"""Rules that a translation leaves out: their counters, the tests they keep, and refusals that remain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from translate.errors import Refusal, UnsupportedError
from translate.gaps import translate_with_gaps
from translate.ir import Account, Family, Origin, Rule, Ruleset
from translate.read import read_ruleset

RULES = b"""\
*filter
:FORWARD ACCEPT [0:0]
-A FORWARD -s 10.0.0.1/32 -j ACCEPT
-A FORWARD -s 10.0.0.2/32 -j ACCEPT
-A FORWARD -s 10.0.0.3/32 -j ACCEPT
COMMIT
"""


@pytest.fixture
def ruleset() -> Ruleset:
    return read_ruleset(RULES, name="rules", family=Family.IP)


def _rules(ruleset: Ruleset) -> tuple[Rule, ...]:
    return ruleset.tables[0].chains[0].rules


def _refusal(origin: Origin, reason: str = "no") -> Refusal:
    return Refusal(origin, "nft", "some", reason)


def _refuse_actions(ruleset: Ruleset) -> Ruleset:
    """Refuse each rule of lines 3 and 5 that has an action."""
    refused = [rule.origin for rule in _rules(ruleset) if rule.actions and rule.origin.line in (3, 5)]
    if refused:
        raise UnsupportedError(tuple(_refusal(origin) for origin in reversed(refused)))
    return ruleset


def _refuse_tests(ruleset: Ruleset) -> Ruleset:
    """Refuse the rule of line 4 as long as it tests an address."""
    rule = _rules(ruleset)[1]
    if any(not isinstance(test, Account) for test in rule.tests):
        raise UnsupportedError((_refusal(rule.origin), _refusal(rule.origin, "another")))
    return ruleset


def test_nothing_is_left_out_where_nothing_is_refused(ruleset: Ruleset) -> None:
    assert translate_with_gaps(ruleset, lambda rules: rules) == (ruleset, ())


def test_a_counter_keeps_the_tests_of_a_rule_whose_action_is_refused(ruleset: Ruleset) -> None:
    output, refusals = translate_with_gaps(ruleset, _refuse_actions)
    assert [refusal.origin.line for refusal in refusals] == [3, 5]
    first, second, third = _rules(output)
    assert second == _rules(ruleset)[1]
    assert first.tests == (*_rules(ruleset)[0].tests, Account(name="gap_line_3"))
    assert first.actions == ()
    assert third.tests[-1] == Account(name="gap_line_5")


def test_a_counter_has_no_test_where_a_test_is_refused(ruleset: Ruleset) -> None:
    output, (refusal,) = translate_with_gaps(ruleset, _refuse_tests)
    assert refusal.reason == "no"
    assert _rules(output)[1].tests == (Account(name="gap_line_4"),)


@pytest.mark.parametrize("line", [0, 4])
def test_a_refusal_that_stays_is_raised(ruleset: Ruleset, line: int) -> None:
    def refuse(rules: Ruleset) -> Ruleset:
        raise UnsupportedError((_refusal(replace(_rules(rules)[1].origin, line=line)),))

    with pytest.raises(UnsupportedError):
        translate_with_gaps(ruleset, refuse)
