from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import nft
from tests.unit.translate.read.conftest import ReadRule
from translate.errors import ParseError, UnsupportedError
from translate.ir import AnyOf, Family, Field, FieldTest, Interval, Test
from translate.read.listing.printed import parse_printed


def chunk(kind: int, *, no: bool = False) -> FieldTest:
    bit = 1 << kind
    return FieldTest(field=Field.SCTP_CHUNKS, values=(Interval.point(bit),), mask=bit, negated=no)


HEADER = FieldTest(field=Field.SPORT, values=(Interval(0, 65535),))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--chunk-types any INIT", (AnyOf(tests=(chunk(1),)),)),
        ("! --chunk-types any asconf,DATA", (AnyOf(tests=(chunk(0), chunk(0xC1)), negated=True),)),
        ("--chunk-types all SACK,SACK,ABORT", (chunk(3), chunk(6))),
        ("! --chunk-types ALL SACK,ABORT", (AnyOf(tests=(chunk(3, no=True), chunk(6, no=True))),)),
    ],
)
def test_meaning(read_rule: ReadRule, options: str, expected: tuple[Test, ...]) -> None:
    assert read_rule(f"-p sctp -m sctp {options}").tests[1:] == (HEADER, *expected)


def test_only_some_types(read_rule: ReadRule) -> None:
    (test,) = read_rule("-p sctp -m sctp --chunk-types only INIT,DATA").tests[2:]
    assert isinstance(test, FieldTest)
    assert test.mask == (1 << 256) - 4
    with pytest.raises(UnsupportedError, match="nftables tests for one chunk"):
        nft("filter", "-A FORWARD -p sctp -m sctp --chunk-types only INIT -j DROP")


@pytest.mark.parametrize("options", ["any DATA:Be", "only ALL", "all none"])
def test_what_is_kept_as_written(read_rule: ReadRule, options: str) -> None:
    assert "--chunk-types" in read_rule(f"-p sctp -m sctp --chunk-types {options}").unknown[0].reason


@pytest.mark.parametrize(
    ("options", "message"),
    [("some INIT", '"some" is none of any, all and only'), ("any INIT,4", '"4" is not a chunk type')],
)
def test_faults(read_rule: ReadRule, options: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_rule(f"-p sctp -m sctp --chunk-types {options}")
    assert message in str(caught.value)


def test_nftables_names_each_type() -> None:
    chains = nft("nat", "-A PREROUTING -p sctp -m sctp --chunk-types all FORWARD_TSN,ECN_ECNE -j ACCEPT")
    text = chains["nat_PREROUTING"][0]
    assert "sctp chunk ecne exists sctp sport >= 0 sctp chunk forward-tsn exists accept" in text


def test_words_of_a_listing() -> None:
    words = parse_printed("sctp dpt:5 ! all 0x00C1,0x0000:Be", None, Family.IP).matches
    assert words == ["-m", "sctp", "--dport", "5", "!", "--chunk-types", "all", "ASCONF,DATA:Be"]
