from __future__ import annotations

import pytest

from tests.unit.translate.rules import program, statements
from translate.ir import Apply, Choose, Field, FieldTest, Interval, Jump, Recent
from translate.passes import verify
from translate.passes.recents import inexact, recent_lists

SERVICE = (
    "-A PREROUTING -d 10.96.0.10/32 -p tcp -m tcp --dport 53 -j SVC",
    "-A SVC -m recent --rcheck --seconds 600 --reap --name A --rsource -j SEP1",
    "-A SVC -m recent --rcheck --seconds 600 --reap --name B --rsource -j SEP2",
    "-A SVC -m statistic --mode random --probability 0.5 -j SEP1",
    "-A SVC -j SEP2",
    "-A SEP1 -p tcp -m recent --set --name A --rsource -m tcp -j DNAT --to-destination 10.0.0.1:53",
    "-A SEP2 -p tcp -m recent --set --name B --rsource -m tcp -j DNAT --to-destination 10.0.0.2:53",
)


def test_a_ladder_with_affinity_is_still_one_draw() -> None:
    first, second, draw = statements(verify(program("nat", *SERVICE, level=1)), "nat/SVC")
    assert [s.actions for s in (first, second) if isinstance(s, Apply)] == [
        (Jump("nat/SEP1"),),
        (Jump("nat/SEP2"),),
    ]
    assert isinstance(draw, Choose)
    assert draw.equal


def test_a_set_that_may_not_match_cuts_the_ladder() -> None:
    negated = [rule.replace("recent --set", "recent ! --set") for rule in SERVICE]
    found = statements(verify(program("nat", *negated, level=1)), "nat/SVC")
    assert not any(isinstance(s, Choose) for s in found)


def test_a_rule_that_only_writes_is_kept() -> None:
    (found,) = statements(program("filter", "-A INPUT -m recent --set --name a", level=1), "filter/INPUT")
    assert isinstance(found, Apply)
    assert found.actions == ()


def test_tests_do_not_cross_a_list() -> None:
    rule = "-A INPUT -p tcp -m recent --set --name a -m tcp --dport 1:5 -m multiport --dports 4,9 -j DROP"
    (found,) = statements(program("filter", rule, level=1), "filter/INPUT")
    before, written, behind = found.tests
    assert isinstance(before, FieldTest)
    assert isinstance(written, Recent)
    assert isinstance(behind, FieldTest)
    assert (before.field, behind.field) == (Field.L4PROTO, Field.DPORT)
    assert behind.values == (Interval.point(4),)


def test_rules_with_a_list_are_no_entries_of_a_lookup() -> None:
    rules = [f"-A INPUT -s 10.0.0.{n}/32 -m recent --set --name a -j DROP" for n in (1, 2, 3)]
    found = statements(program("filter", *rules, level=1), "filter/INPUT")
    assert [type(s) for s in found] == [Apply] * 3


@pytest.mark.parametrize(
    ("rules", "shows"),
    [
        (("--rcheck --seconds 5 --reap",), False),
        (("--rcheck --seconds 5 --reap", "--update --seconds 5"), False),
        (("--rcheck --seconds 5 --reap", "--rcheck --seconds 6"), True),
        (("--rcheck --seconds 5 --reap", "--rcheck"), True),
        (("--rcheck --seconds 5 --reap", "--remove"), True),
        (("--rcheck --seconds 5 --reap", "! --update --seconds 5"), True),
        (("--rcheck --seconds 5", "--remove"), False),
    ],
)
def test_when_reaping_shows(rules: tuple[str, ...], shows: bool) -> None:
    lowered = program("filter", *(f"-A INPUT -m recent --name a {rule}" for rule in rules))
    known = recent_lists(lowered)["a"]
    assert known.reaping_shows is shows
    first = statements(lowered, "filter/INPUT")[0].tests[0]
    assert isinstance(first, Recent)
    assert (inexact(first, known) is not None) is shows


def test_a_list_is_placed_at_the_first_rule_that_fills_it() -> None:
    rules = ("-A INPUT -m recent --rcheck --name a", "-A INPUT -m recent --set --name a")
    known = recent_lists(program("filter", *rules))["a"]
    assert known.origin.text == rules[1]
    assert known.limited
