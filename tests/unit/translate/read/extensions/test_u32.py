from __future__ import annotations

import pytest

from tests.unit.translate.read.conftest import ReadRule
from translate.errors import ParseError
from translate.ir import Family, WordTest, read_words
from translate.read.listing.printed import parse_printed


@pytest.mark.parametrize("family", Family)
def test_meaning(read_rule: ReadRule, family: Family) -> None:
    rule = read_rule('-m u32 ! --u32 "6&0xFF=1 && 0=2:3" -j DROP', family=family)
    assert rule.tests == (WordTest(words=read_words("0x6&0xff=0x1&&0x0=0x2:0x3"), negated=True),)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("u32", 'u32 needs the option "--u32"'),
        ('u32 --u32 "6&0xFF"', '--u32: expected one of "&"'),
        ('u32 --u32 "6<<32=1"', "--u32: a shift by 32 bits"),
    ],
)
def test_what_iptables_does_not_take(read_rule: ReadRule, options: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_rule(f"-m {options}")
    assert message in str(caught.value)


def test_words_of_a_listing() -> None:
    for family in Family:
        assert parse_printed(' u32 "0x6&0xff=0x1&&0x0=0x2"', None, family).matches == [
            *("-m", "u32", "--u32", "0x6&0xff=0x1&&0x0=0x2")
        ]
        assert parse_printed(' u32 ! "0x0=0x5"', None, family).matches == [
            *("-m", "u32", "!", "--u32", "0x0=0x5")
        ]
