"""``-m mh``: types of Mobility Headers by number, name and beginning of a name."""

from __future__ import annotations

import pytest

from tests.unit.translate.read.conftest import ReadRule
from tests.unit.translate.read.helpers.fieldtests import field_test
from translate.errors import ParseError
from translate.ir import Family, Field


@pytest.mark.parametrize(
    ("options", "low", "high", "no"),
    [
        ("", 0, 255, False),
        ("--mh-type 5", 5, 5, False),
        ("! --mh-type 0x10", 16, 16, True),
        ("--mh-type bu", 5, 5, False),
        ("--mh-type BINDING-ERROR", 7, 7, False),
        ("--mh-type h", 1, 1, False),  # the first name that begins so
        ("--mh-type home-test", 3, 3, False),  # not home-test-init, which also begins so
        ('--mh-type ""', 0, 0, False),
        ("--mh-type :", 0, 255, False),
        ("--mh-type :3", 0, 3, False),
        ("--mh-type ba:", 6, 255, False),
        ("! --mh-type coti:hot", 2, 3, True),
    ],
)
def test_meaning(read_rule: ReadRule, options: str, low: int, high: int, no: bool) -> None:
    rule = read_rule(f"-p mobility-header -m mh {options}".rstrip(), family=Family.IP6)
    assert rule.tests[1:] == (field_test(Field.MH_TYPE, low, high, no=no),)


@pytest.mark.parametrize(
    ("rule", "family", "message"),
    [
        ("-m mh", Family.IP6, 'mh needs "-p mobility-header"'),
        ("! -p mh -m mh", Family.IP6, 'mh needs "-p mobility-header"'),
        ("-p mh -m mh --mh-type 256", Family.IP6, '"256" is not a number from 0 to 255'),
        ("-p mh -m mh --mh-type 5:bux", Family.IP6, '"bux" is not a number from 0 to 255'),
        ("-p mh -m mh --mh-type be:brr", Family.IP6, "the range of types ends before it begins"),
        ("-p mh -m mh", Family.IP, '"mh" does not belong to IPv4'),
    ],
)
def test_what_iptables_does_not_take(read_rule: ReadRule, rule: str, family: Family, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_rule(rule, family=family)
    assert message in str(caught.value)
