"""``-m cpu``: the test of the processor, and how nft and the tc program spell it."""

from __future__ import annotations

import pytest

import translate.bpf
import translate.nft
from tests.unit.translate.read.conftest import ReadRule
from tests.unit.translate.read.helpers.fieldtests import field_test
from translate.errors import ParseError
from translate.ir import Field, FieldTest
from translate.passes import lower
from translate.read import read_ruleset
from translate.read.listing.printed import parse_printed


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--cpu 1", field_test(Field.CPU, 1, 1)),
        ("! --cpu 0x10", field_test(Field.CPU, 16, 16, no=True)),
        ("--cpu 4294967295", field_test(Field.CPU, 4294967295, 4294967295)),
    ],
)
def test_meaning(read_rule: ReadRule, options: str, expected: FieldTest) -> None:
    assert read_rule(f"-m cpu {options}").tests == (expected,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", 'cpu needs the option "--cpu"'),
        ("--cpu 4294967296", "is not a number from 0 to 4294967295"),
        ("--cpu 0:1", '"0:1" is not a number'),
    ],
)
def test_what_iptables_does_not_take(read_rule: ReadRule, options: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_rule(f"-m cpu {options}".rstrip())
    assert message in str(caught.value)


@pytest.mark.parametrize(("text", "words"), [("cpu 1", "--cpu 1"), ("cpu ! 1", "! --cpu 1")])
def test_words_of_a_listing(text: str, words: str) -> None:
    assert parse_printed(text, None).matches == ["-m", "cpu", *words.split()]


RULES = b"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m cpu ! --cpu 1 -j DROP\nCOMMIT\n"


@pytest.mark.parametrize("level", [0, 2])
def test_both_translations_read_the_processor(level: int) -> None:
    program = lower(read_ruleset(RULES, name="rules"), level=level)
    assert "meta cpu != 1 drop" in translate.nft.emit(program).text
    assert "!(bpf_get_smp_processor_id() == 0x1)" in translate.bpf.emit(program).chains
