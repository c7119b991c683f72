"""``-m devgroup``: the tests of groups, where iptables takes them, and how nft spells them."""

from __future__ import annotations

import pytest

from tests.unit.translate.read.conftest import ReadRule
from tests.unit.translate.read.helpers.fieldtests import field_test
from translate.errors import ParseError
from translate.ir import Family, Field, FieldTest, Interval
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset
from translate.read.listing.printed import parse_printed

IN, OUT = Field.IIF_GROUP, Field.OIF_GROUP


def masked(value: int, mask: int, *, no: bool = False) -> FieldTest:
    return FieldTest(field=IN, values=(Interval.point(value),), mask=mask, negated=no)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--src-group 7", [field_test(IN, 7, 7)]),
        ("! --src-group 0x7", [field_test(IN, 7, 7, no=True)]),
        ("--src-group default", [field_test(IN, 0, 0)]),
        ("--src-group 010", [field_test(IN, 8, 8)]),
        ("--src-group 4294967295", [field_test(IN, 4294967295, 4294967295)]),
        ("--src-group 4/0xffffffff", [field_test(IN, 4, 4)]),
        ("--src-group 0x10/0xf0", [masked(0x10, 0xF0)]),
        ("! --src-group 0x13/0xf", [masked(0x3, 0xF, no=True)]),
        ("--src-group 1/0", [masked(0, 0)]),
        ("! --src-group 1 --dst-group 2", [field_test(IN, 1, 1, no=True), field_test(OUT, 2, 2)]),
    ],
)
def test_meaning(read_rule: ReadRule, options: str, expected: list[FieldTest]) -> None:
    assert read_rule(f"-m devgroup {options}").tests == tuple(expected)


def test_a_name_that_only_the_node_knows_is_kept_as_written(read_rule: ReadRule) -> None:
    rule = read_rule("-m devgroup --src-group uplinks")
    assert 'the group "uplinks"' in rule.unknown[0].reason


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "devgroup needs --src-group or --dst-group"),
        ("--src-group 1/", '"1/" is not a group'),
        ("--src-group 1/0x1ffffffff", '"1/0x1ffffffff" is not a group'),
        ("--src-group 4294967296", '"4294967296" is not a group'),
        ("--src-group -1", '"-1" is not a group'),
        ('--src-group ""', '"" is not a group'),
    ],
)
def test_what_iptables_does_not_take(read_rule: ReadRule, options: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_rule(f"-m devgroup {options}".rstrip())
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("chain", "option"),
    [("OUTPUT", "--src-group"), ("INPUT", "--dst-group")],
)
def test_a_hook_without_the_interface(chain: str, option: str) -> None:
    rules = f"-A {chain} -j sub\n-A sub -m devgroup {option} 1"
    text = f"*filter\n:{chain} ACCEPT [0:0]\n:sub - [0:0]\n{rules}\nCOMMIT\n"
    with pytest.raises(ParseError) as caught:
        read_ruleset(text.encode(), name="rules")
    assert f"{option} is not valid in {chain}, from which chain sub is reached" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("src-group 0x10/0xf0 ! dst-group 0x8", "--src-group 0x10/0xf0 ! --dst-group 0x8"),
        ("! src-group 0x0", "! --src-group 0x0"),
        ("dst-group default", "--dst-group default"),
    ],
)
def test_words_of_a_listing(text: str, words: str) -> None:
    assert parse_printed(text, None).matches == ["-m", "devgroup", *words.split()]


RULES = (
    b"*filter\n:FORWARD ACCEPT [0:0]\n"
    b"-A FORWARD -m devgroup --src-group 0x10/0xf0 ! --dst-group 0x8 -j DROP\nCOMMIT\n"
)


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("family", Family)
def test_nft_reads_the_groups(level: int, family: Family) -> None:
    output = emit(lower(read_ruleset(RULES, name="rules", family=family), level=level)).text
    assert "iifgroup & 0xf0 == 0x10 oifgroup != 0x8 drop" in output
