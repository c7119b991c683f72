"""``-m eui64``: its meaning, where iptables takes it, and what the translations make of it."""

from __future__ import annotations

import pytest

import translate.bpf
import translate.nft
from backends.model.link import eui64
from tests.unit.translate.read.conftest import ReadRule
from tests.unit.translate.read.helpers.fieldtests import field_test
from translate.errors import ParseError, UnsupportedError
from translate.ir import Family, Field
from translate.passes import lower
from translate.read import read_ruleset
from translate.read.listing.printed import parse_printed

RULES = b"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m eui64 -j DROP\nCOMMIT\n"


def test_meaning(read_rule: ReadRule) -> None:
    assert read_rule("-m eui64", family=Family.IP6).tests == (field_test(Field.EUI64, 1, 1),)


@pytest.mark.parametrize(
    ("mac", "half"),
    [
        (0x020000000202, 0x000000FFFE000202),
        (0x34567890ABCD, 0x365678FFFE90ABCD),  # the example of RFC 4291, appendix A
        (0xFFFFFFFFFFFF, 0xFDFFFFFFFEFFFFFF),
    ],
)
def test_half_of_an_address(mac: int, half: int) -> None:
    assert eui64(mac) == half


@pytest.mark.parametrize(
    ("text", "family", "message"),
    [
        (RULES, Family.IP, '"eui64" does not belong to IPv4'),
        (RULES.replace(b"INPUT", b"OUTPUT"), Family.IP6, "match eui64 is not valid in OUTPUT"),
    ],
)
def test_what_iptables_does_not_take(text: bytes, family: Family, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_ruleset(text, name="rules", family=family)
    assert message in str(caught.value)


def test_words_of_a_listing() -> None:
    assert parse_printed("eui64", None, Family.IP6).matches == ["-m", "eui64"]


def test_nft_compares_no_field_with_another() -> None:
    program = lower(read_ruleset(RULES, name="rules", family=Family.IP6), level=0)
    with pytest.raises(UnsupportedError) as caught:
        translate.nft.emit(program)
    assert [refusal.feature for refusal in caught.value.refusals] == ["eui64"]


def test_the_tc_program_compares_both() -> None:
    program = lower(read_ruleset(RULES, name="rules", family=Family.IP6), level=0)
    assert "p->has_ether && ((u64)p->saddr == " in translate.bpf.emit(program).chains
